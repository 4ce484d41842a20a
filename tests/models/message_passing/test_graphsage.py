"""GraphSAGE in plain loops, and that a maximum ignores how often a value occurs."""

import networkx as nx
import torch
import torch.nn.functional as F
from torch_geometric.data import Data

from grit.models import Gin, GraphSage
from tests.models.by_hand import SCHEMA, batch_of, embed, norm, with_own_norms
from tests.models.by_hand import WITH_DIRECTED as GRAPHS
from tests.models.message_passing.test_gcn import neighbours


@torch.no_grad()
def test_graphsage():
    model = with_own_norms(GraphSage(SCHEMA, num_layers=2, hidden_dim=12))
    found = model(batch_of(GRAPHS))
    for number, graph in enumerate(GRAPHS):
        x = embed(model.node, graph.x)
        for layer in model.layers:
            conv = layer.conv
            pooled = conv.lin(x).clamp(min=0)
            nothing = torch.zeros(12, dtype=torch.float64)
            largest = torch.stack([pooled[js].max(0).values if js else nothing for js in neighbours(graph)])
            mixed = torch.cat([x, largest], 1) @ torch.cat([conv.lin_r.weight, conv.lin_l.weight], 1).T
            x = x + norm(layer.norm, F.normalize(mixed + conv.lin_l.bias, dim=1).clamp(min=0))
        torch.testing.assert_close(found[number], model.output.head(x.mean(0, keepdim=True))[0])


@torch.no_grad()
def test_a_maximum_ignores_how_often_a_neighbour_occurs():
    """The centre of a star does not see how many equal leaves there are. A sum does."""

    def centre(kind, leaves):
        torch.manual_seed(0)
        model = kind(SCHEMA.model_copy(update={"level": "node"}), num_layers=2, hidden_dim=12, pooling="none")
        edges = torch.tensor(list(nx.star_graph(leaves).to_directed().edges)).t()
        star = Data(
            x=torch.ones(leaves + 1, 1).long(), edge_index=edges, edge_attr=torch.zeros(2 * leaves, dtype=torch.int64)
        )
        return model.double().eval()(batch_of([star]))[0]

    torch.testing.assert_close(centre(GraphSage, 2), centre(GraphSage, 5))
    assert (centre(Gin, 2) - centre(Gin, 5)).abs().max() > 1e-3
