import pytest
import torch

import grit
from grit.models import GatedGcn
from grit.models.blocks import normalised_gates
from tests.models.by_hand import GRAPHS, SCHEMA, batch_of, embed, norm, with_own_norms


def layer_by_hand(layer, x, edge, edge_index):
    """Nodes and edges after one layer, edge by edge."""
    own, message, at_target, at_source = layer.node_maps(x).chunk(4, 1)
    score = layer.edge_map(edge).clone()
    for e, (source, target) in enumerate(edge_index.T.tolist()):
        score[e] += at_target[target] + at_source[source]
    received = own.clone()
    for i in range(x.shape[0]):
        into = [e for e, target in enumerate(edge_index[1].tolist()) if target == i]
        total = sum((score[e].sigmoid() for e in into), torch.zeros_like(x[i])) + 1e-6
        for e in into:
            received[i] += score[e].sigmoid() / total * message[edge_index[0, e]]
    return x + norm(layer.node_norm, received).clamp(min=0), edge + norm(layer.edge_norm, score).clamp(min=0)


def test_by_hand():
    model = with_own_norms(GatedGcn(SCHEMA, num_layers=2, hidden_dim=8, head="mlp", head_layers=1))
    with torch.no_grad():
        found = model(batch_of(GRAPHS))
        for number, graph in enumerate(GRAPHS):
            x, edge = embed(model.node.features, graph.x), embed(model.edge, graph.edge_attr)
            for layer in model.layers:
                x, edge = layer_by_hand(layer, x, edge, graph.edge_index)
            torch.testing.assert_close(found[number], model.output.head(x.mean(0, keepdim=True))[0])


def test_the_gates_of_a_node_sum_to_one_in_every_channel():
    edge_index = torch.tensor([[0, 1, 2, 0, 0], [3, 3, 3, 1, 1]])
    gates = normalised_gates(torch.randn(5, 6, dtype=torch.float64), edge_index[1], 4)
    total = torch.zeros(4, 6, dtype=torch.float64).index_add(0, edge_index[1], gates)
    torch.testing.assert_close(total[[1, 3]], torch.ones(2, 6, dtype=torch.float64), rtol=0, atol=1e-5)
    assert (gates > 0).all()
    assert not total[[0, 2]].any()


def test_return_probabilities_stand_beside_the_features():
    model = with_own_norms(GatedGcn(SCHEMA, encoding="rwse", walk_steps=5, num_layers=1, encoding_dim=20))
    batch = batch_of(GRAPHS, "rwse", 5)
    with torch.no_grad():
        x = model.node(batch)
        wanted = model.node.encoding.linear(norm(model.node.encoding.norm, batch.node_encoding[:, 1:]))
    assert x.shape == (batch.num_nodes, 78)
    torch.testing.assert_close(x[:, 58:], wanted)
    torch.testing.assert_close(x[:, :58], embed(model.node.features, batch.graphs.x))


def test_a_batch_without_edges_trains_and_leaves_the_norm_of_edges_as_it_is():
    alone = [graph.subgraph(torch.tensor([0])) for graph in GRAPHS]
    model = GatedGcn(SCHEMA, num_layers=2, hidden_dim=8).double().train()
    model(batch_of(alone)).sum().backward()
    assert torch.equal(model.layers[0].edge_norm.running_mean, torch.zeros(8, dtype=torch.float64))
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


def test_dropout_only_in_training():
    batch = batch_of(GRAPHS)
    model = GatedGcn(SCHEMA, num_layers=1, dropout=0.5).double()
    assert not torch.equal(model(batch), model(batch))
    model.eval()
    assert torch.equal(model(batch), model(batch))


def test_an_encoding_that_leaves_no_room_for_features():
    with pytest.raises(grit.GritError, match="hidden_dim must be more than encoding_dim, 20.*rwse.*got 20"):
        GatedGcn(SCHEMA, encoding="rwse", walk_steps=5, hidden_dim=20)


def test_a_batch_with_another_encoding():
    model = GatedGcn(SCHEMA, encoding="rwse", walk_steps=5).double()
    with pytest.raises(grit.GritError, match="of width 4, the model was built for 5"):
        model(batch_of(GRAPHS, "rwse", 4))
