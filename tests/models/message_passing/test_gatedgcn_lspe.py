import pytest
import torch
from hypothesis import given

import grit
from grit.models import GatedGcnLspe
from tests.graph_strategies import featured_graphs
from tests.models.by_hand import GRAPHS, SCHEMA, batch_of, cycles, embed, norm, undirected, with_own_norms


def layer_by_hand(layer, h, p, edge, edge_index):
    at_source, at_target = layer.gate_maps(h).chunk(2, 1)
    own, message = layer.both_maps(torch.cat([h, p], 1)).chunk(2, 1)
    own_p, message_p = layer.position_maps(p).chunk(2, 1)
    received, moved, score = own.clone(), own_p.clone(), layer.edge_map(edge).clone()
    for e, (source, target) in enumerate(edge_index.T.tolist()):
        score[e] += at_source[source] + at_target[target]
    for i in range(h.shape[0]):
        into = [e for e, target in enumerate(edge_index[1].tolist()) if target == i]
        total = sum((score[e].sigmoid() for e in into), torch.zeros_like(h[i])) + 1e-6
        for e in into:
            gate = score[e].sigmoid() / total
            received[i] += gate * message[edge_index[0, e]]
            moved[i] += gate * message_p[edge_index[0, e]]
    h = h + norm(layer.node_norm, received / h.shape[0] ** 0.5).clamp(min=0)
    return h, p + moved.tanh(), edge + norm(layer.edge_norm, score).clamp(min=0)


def test_by_hand():
    model = with_own_norms(GatedGcnLspe(SCHEMA, walk_steps=4, num_layers=2))
    batch = batch_of(GRAPHS, "rwse", 4)
    with torch.no_grad():
        found = model(batch)
        for number, graph in enumerate(GRAPHS):
            first, stop = batch.graphs.node_ptr[number : number + 2].tolist()
            h, edge = embed(model.node, graph.x), embed(model.edge, graph.edge_attr)
            p = model.position(batch.node_encoding[first:stop, 1:])
            for layer in model.layers:
                h, p, edge = layer_by_hand(layer, h, p, edge, graph.edge_index)
            p = model.position_out(p)
            p = p - p.mean(0)
            x = model.join(torch.cat([h, p / (p.square().sum(0) + 1e-6).sqrt()], 1))
            torch.testing.assert_close(found[number], model.output.head(x.mean(0, keepdim=True))[0])


def positions(graph):
    """What the positional stream holds after three rounds."""
    torch.manual_seed(0)
    model = with_own_norms(GatedGcnLspe(SCHEMA, walk_steps=6, num_layers=3, hidden_dim=8))
    batch = batch_of([graph], "rwse", 6)
    with torch.no_grad():
        h, edge = model.node(batch.graphs.x), model.edge(batch.graphs.edge_attr)
        p = model.position(batch.node_encoding[:, 1:])
        for layer in model.layers:
            h, p, edge = layer(h, p, edge, batch)
    return p


def test_positions_read_features_through_the_gates_alone():
    """Gates weigh the positions of neighbours. Where these are all alike, no feature can change anything."""
    ring, other = cycles(6), cycles(6)
    other.x = torch.arange(6).unsqueeze(1)
    torch.testing.assert_close(positions(ring), positions(other), rtol=0, atol=1e-4)
    path, other = (undirected([(0, 1), (1, 2), (2, 3), (3, 4)], 5) for _ in range(2))
    other.x = torch.arange(5).unsqueeze(1)
    assert (positions(path) - positions(other)).abs().max() > 1e-2


@given(featured_graphs())
def test_a_graph_whose_nodes_are_alike_has_a_gradient(data):
    model = GatedGcnLspe(SCHEMA, walk_steps=3, num_layers=1).double().eval()
    model(batch_of([data], "rwse", 3)).sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


def test_positions_need_walks():
    with pytest.raises(grit.GritError, match=r"encoding.walk_steps must be 2 or more, got 1"):
        GatedGcnLspe(SCHEMA, walk_steps=1)
    with pytest.raises(grit.GritError, match="gatedgcn-lspe reads the encoding rwse or rrwp, not none"):
        grit.load_recipe("zinc-gatedgcn-lspe", "encoding.name=none")
