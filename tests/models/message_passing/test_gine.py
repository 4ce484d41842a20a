"""GINE beside its equation, as a small baseline and in the form of the Long Range Graph Benchmark."""

import torch

from grit.models import Gine
from tests.models.by_hand import SCHEMA, batch_of, embed, messages, norm, with_own_norms
from tests.models.by_hand import WITH_DIRECTED as GRAPHS


def test_by_hand():
    model = with_own_norms(Gine(SCHEMA, num_layers=2))
    with torch.no_grad():
        found = model(batch_of(GRAPHS))
        for number, graph in enumerate(GRAPHS):
            x, edge = embed(model.node, graph.x), embed(model.edge, graph.edge_attr)
            for conv, each in zip(model.convs, model.norms, strict=True):
                first, _, second = conv.nn
                hidden = first((1 + conv.eps) * x + messages(x, edge, graph.edge_index)).clamp(min=0)
                x = x + norm(each, second(hidden)).clamp(min=0)
            torch.testing.assert_close(found[number], model.output.head(x.sum(0, keepdim=True))[0])


def test_as_described():
    model = Gine(SCHEMA)
    assert len(model.convs) == len(model.norms) == 4
    assert all(conv.eps.requires_grad for conv in model.convs)
    assert model.convs[0].nn[0].weight.shape == (64, 64)


@torch.no_grad()
def test_the_form_of_the_long_range_graph_benchmark():
    """No norm, no ε, a mean and one linear map."""
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
