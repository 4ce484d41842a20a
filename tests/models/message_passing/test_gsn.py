"""GSN: one layer by hand, and what cycle counts tell it that messages alone cannot."""

import pytest
import torch
import torch.nn.functional as F

from grit.models import Gine, Gsn
from grit.models.message_passing.gsn import GsnLayer
from grit.studies.theory.hard_graphs import witness_pairs
from tests.models.by_hand import GRAPHS, PLAIN, SCHEMA, batch_of, norm, of_matrix, with_own_norms


def mlp(module, x):
    """Linear, norm, ReLU, linear."""
    first, normed, _, second = module
    return second(norm(normed, first(x)).clamp(min=0))


def counts_by_trial(graph):
    """Triangles and squares through every node of a simple graph, from powers of its matrix and by looking at all squares."""
    n = graph.num_nodes
    joined = torch.zeros(n, n, dtype=torch.int64)
    joined[graph.edge_index[0], graph.edge_index[1]] = 1
    triangles = torch.linalg.matrix_power(joined.double(), 3).diagonal() / 2
    squares = torch.zeros(n, dtype=torch.float64)
    for a in range(n):
        for b in range(n):
            for c in range(n):
                for d in range(n):
                    if len({a, b, c, d}) == 4 and joined[a, b] and joined[b, c] and joined[c, d] and joined[d, a]:
                        squares[a] += 0.5
    return torch.stack([triangles, squares], 1).long()


def test_a_model_of_one_layer():
    torch.manual_seed(0)
    model = with_own_norms(Gsn(SCHEMA, walk_steps=4, num_layers=1, hidden_dim=6, max_count=1))
    found = model(batch_of(GRAPHS, encoding="cycles", walk_steps=4))
    (layer,) = model.layers
    assert any(counts_by_trial(graph).max() > 1 for graph in GRAPHS), "some count is cut off"
    for number, graph in enumerate(GRAPHS):
        x = F.one_hot(graph.x[:, 0], 21).double()
        edge = F.one_hot(graph.edge_attr, 4).double()
        marks = F.one_hot(counts_by_trial(graph).clamp(max=1), 2).flatten(1).double()
        received = torch.zeros(graph.num_nodes, 6, dtype=torch.float64)
        for (j, i), e in zip(graph.edge_index.T.tolist(), edge, strict=True):
            received[i] += mlp(layer.message, torch.cat([x[i], x[j], marks[i], marks[j], e]))
        x = norm(layer.norm, mlp(layer.update, torch.cat([x, received], 1))).clamp(min=0)
        torch.testing.assert_close(found[number], mlp(model.head, x.sum(0)))


def test_only_the_first_layer_reads_counts():
    model = Gsn(SCHEMA, walk_steps=8)
    widths = [layer.message[0].in_features for layer in model.layers]
    assert widths == [2 * (21 + 6 * 6) + 4, 304, 304, 304]


def outputs(model, pair, **options):
    with torch.no_grad():
        return model(batch_of([of_matrix(adjacency) for adjacency in pair], **options))


@pytest.mark.parametrize("identifiers", ["node", "edge"])
def test_it_counts_cycles(identifiers):
    """Decalin has two rings of six, bicyclopentyl two of five. No message passing without counts tells them apart."""
    pair = witness_pairs()["decalin / bicyclopentyl"]
    torch.manual_seed(0)
    one, other = outputs(Gine(PLAIN).double().eval(), pair)
    torch.testing.assert_close(one, other)
    one, other = outputs(
        Gsn(PLAIN, walk_steps=6, identifiers=identifiers).double().eval(), pair, encoding="cycles", walk_steps=6
    )
    assert (one - other).abs().max() > 1e-6  # of about 0.1; equal graphs differ by less than 1e-15


def test_edges_are_told_apart_by_the_edge_identifiers():
    """A triangle with a tail: the edges of the triangle are on one cycle, the tail is on none."""
    graph = of_matrix([[0, 1, 1, 1], [1, 0, 1, 0], [1, 1, 0, 0], [1, 0, 0, 0]])
    batch = batch_of([graph], encoding="cycles", walk_steps=3)
    counts = Gsn(PLAIN, walk_steps=3, identifiers="edge", max_count=1).counts(batch)
    for (source, target), mark in zip(graph.edge_index.T.tolist(), counts.tolist(), strict=True):
        assert mark == ([1.0, 0.0] if 3 in (source, target) else [0.0, 1.0])


def test_a_batch_without_edges_leaves_the_statistics_alone():
    torch.manual_seed(0)
    model = Gsn(PLAIN, walk_steps=3, hidden_dim=4).train()
    model(batch_of([of_matrix([[0]]), of_matrix([[0]])], encoding="cycles", walk_steps=3, dtype=torch.float32))
    assert all(torch.isfinite(value).all() for value in model.state_dict().values())


def test_a_layer_alone():
    layer = GsnLayer(dim=3, edge_dim=2, hidden_dim=5)
    assert layer(torch.ones(4, 3), torch.tensor([[0, 1], [1, 2]]), torch.ones(2, 2)).shape == (4, 5)
