"""GCN and GIN with bond features in plain loops, and what the virtual node passes on."""

import pytest
import torch
from torch_geometric.data import Data

from grit.models import GcnOgb, GcnVirtual, GinOgb, GinVirtual
from tests.models.by_hand import SCHEMA, batch_of, embed, messages, norm, with_own_norms
from tests.models.by_hand import WITH_DIRECTED as GRAPHS

NODES = SCHEMA.model_copy(update={"level": "node"})


def gcn_conv(conv, x, graph):
    x, edge = conv.linear(x), embed(conv.edge, graph.edge_attr)
    d = [1 + sum(source == node for source in graph.edge_index[0].tolist()) for node in range(graph.num_nodes)]
    mixed = torch.stack([(x[i] + conv.root[0]).clamp(min=0) / d[i] for i in range(graph.num_nodes)])
    for (j, i), each in zip(graph.edge_index.T.tolist(), edge, strict=True):
        mixed[i] += (x[j] + each).clamp(min=0) / (d[i] * d[j]) ** 0.5
    return mixed


def gin_conv(conv, x, graph):
    first, first_norm, _, second = conv.conv.nn
    heard = (1 + conv.conv.eps) * x + messages(x, embed(conv.edge, graph.edge_attr), graph.edge_index)
    return second(norm(first_norm, first(heard)).clamp(min=0))


@pytest.mark.parametrize(
    ("kind", "conv_of"), [(GcnOgb, gcn_conv), (GcnVirtual, gcn_conv), (GinOgb, gin_conv), (GinVirtual, gin_conv)]
)
@torch.no_grad()
def test_by_hand(kind, conv_of):
    model = with_own_norms(kind(SCHEMA, num_layers=3, hidden_dim=12))
    virtual = torch.zeros(12, dtype=torch.float64)
    if model.virtual is not None:
        model.virtual.copy_(torch.randn(1, 12))
        virtual = model.virtual[0]
    found, begin = model(batch_of(GRAPHS)), virtual
    for number, graph in enumerate(GRAPHS):
        x, virtual = embed(model.node, graph.x), begin
        for layer, (conv, each) in enumerate(zip(model.convs, model.norms, strict=True)):
            x = x + virtual
            if model.virtual is not None and layer < 2:
                first, first_norm, _, second, second_norm, _ = model.virtual_mlps[layer]
                hidden = norm(first_norm, first(virtual + x.sum(0))).clamp(min=0)
                virtual = norm(second_norm, second(hidden)).clamp(min=0)
            x = norm(each, conv_of(conv, x, graph))
            x = x.clamp(min=0) if layer < 2 else x
        torch.testing.assert_close(found[number], model.output.head.linears[0](x.sum(0)))


def first_node(kind, num_layers, last_atom):
    """What is predicted for node 0 of two bonds that nothing connects, depending on an atom of the other bond."""
    torch.manual_seed(0)
    model = kind(NODES, num_layers=num_layers, hidden_dim=12).double().eval()
    edges = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
    pair = Data(x=torch.tensor([[1], [2], [3], [last_atom]]), edge_index=edges, edge_attr=torch.ones(4).long())
    with torch.no_grad():
        return model(batch_of([pair]))[0]


@pytest.mark.parametrize(
    ("kind", "num_layers", "is_heard"),
    [(GcnVirtual, 2, True), (GinVirtual, 2, True), (GcnVirtual, 1, False), (GcnOgb, 4, False), (GinOgb, 4, False)],
)
def test_a_virtual_node_passes_on_what_no_edge_does_in_two_layers(kind, num_layers, is_heard):
    change = (first_node(kind, num_layers, 4) - first_node(kind, num_layers, 5)).abs().max()
    assert (change > 1e-9) == is_heard


@pytest.mark.parametrize("kind", [GcnVirtual, GinVirtual])
def test_a_batch_of_one_graph_can_be_trained_on(kind):
    """The last batch of an epoch may have one graph, and a norm over graphs has no variance there."""
    model = kind(SCHEMA, num_layers=3, hidden_dim=12).double()
    predicted = model(batch_of(GRAPHS[:1]))
    predicted.sum().backward()
    assert torch.isfinite(predicted).all()
    assert all(torch.isfinite(each.grad).all() for each in model.parameters() if each.grad is not None)
