"""GINE in the form of the Long Range Graph Benchmark: no norm, no ε, a mean and one linear map."""

import torch

from grit.models import Gine
from tests.models.message_passing.small import GRAPHS
from tests.models.test_layers_by_hand import SCHEMA, batch_of, embed, messages


@torch.no_grad()
def test_the_form_of_the_long_range_graph_benchmark():
    options = {"norm": "none", "learn_epsilon": False, "pooling": "mean", "head_layers": 1}
    model = Gine(SCHEMA, num_layers=2, hidden_dim=12, **options).double().eval()
    found = model(batch_of(GRAPHS))
    for number, graph in enumerate(GRAPHS):
        x, edge = embed(model.node, graph.x), embed(model.edge, graph.edge_attr)
        for conv in model.convs:
            first, _, second = conv.nn
            x = x + second(first(x + messages(x, edge, graph.edge_index)).clamp(min=0)).clamp(min=0)
        head = model.output.head.linears[0]
        torch.testing.assert_close(found[number], head(x.mean(0)))
