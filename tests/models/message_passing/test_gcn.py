"""GCN in plain loops, node by node: the mean over neighbours, and the symmetric form."""

import torch
import torch.nn.functional as F

from grit.models import Gcn, GcnSymmetric
from tests.models.by_hand import SCHEMA, batch_of, embed, norm, with_own_norms
from tests.models.by_hand import WITH_DIRECTED as GRAPHS


def neighbours(graph):
    """Of each node, those from which an edge comes, as often as it does."""
    found = [[] for _ in range(graph.num_nodes)]
    for source, target in graph.edge_index.T.tolist():
        found[target].append(source)
    return found


@torch.no_grad()
def test_gcn():
    model = with_own_norms(Gcn(SCHEMA, num_layers=2, hidden_dim=12))
    found = model(batch_of(GRAPHS))
    for number, graph in enumerate(GRAPHS):
        x = embed(model.node, graph.x)
        for layer in model.layers:
            linear = layer.conv.linear
            rows = [x[js].mean(0) if js else torch.zeros(12, dtype=torch.float64) for js in neighbours(graph)]
            mixed = torch.stack(rows) @ linear.weight.T + linear.bias
            x = x + norm(layer.norm, mixed).clamp(min=0)
        torch.testing.assert_close(found[number], model.output.head(x.mean(0, keepdim=True))[0])


@torch.no_grad()
def test_gcn_symmetric():
    model = with_own_norms(GcnSymmetric(SCHEMA, num_layers=2, hidden_dim=12))
    found = model(batch_of(GRAPHS))
    for number, graph in enumerate(GRAPHS):
        x = embed(model.node, graph.x)
        adjacency = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=torch.float64)
        for source, target in graph.edge_index.T.tolist():
            adjacency[target, source] += 1
        adjacency.fill_diagonal_(1)
        scale = torch.diag(adjacency.sum(1) ** -0.5)
        for layer in model.layers:
            mixed = scale @ adjacency @ scale @ x @ layer.conv.lin.weight.T
            x = F.normalize(norm(layer.norm, mixed).clamp(min=0), dim=1)
        head = model.output.head.linears[0]
        torch.testing.assert_close(found[number], x.mean(0) @ head.weight.T + head.bias)
