"""CRaWl: one layer by hand, window by window; which walks are drawn; what windows show of them."""

import networkx as nx
import pytest
import torch
import torch.nn.functional as F
from torch_geometric.data import Data

import grit
from grit.models import Crawl, Gine
from grit.models.blocks.random_walks import draw_walks, neighbours, sameness
from grit.models.message_passing.crawl import CrawlLayer
from grit.studies.theory.hard_graphs import witness_pairs
from tests.models.by_hand import GRAPHS, PLAIN, SCHEMA, batch_of, norm, of_matrix, with_own_norms


def neighbours_of(graph):
    return neighbours(batch_of([graph]).graphs)


def cycle(length):
    return of_matrix(nx.to_numpy_array(nx.cycle_graph(length), dtype=int))


def walks_on(graph, steps=6, count=300):
    """That many walks from every node."""
    start = torch.arange(graph.num_nodes).repeat(count)
    numbers = torch.rand(len(start), steps, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return draw_walks(neighbours_of(graph), start, numbers)


class TestWindows:
    def test_a_triangle_is_seen(self):
        """Columns: the same node 1, 2, 3 steps before, joined to the node 2, 3 steps before."""
        walk = torch.tensor([[0, 1, 2, 0]])
        found = sameness(walk, neighbours_of(cycle(3)), window=3).int().tolist()
        assert found == [[[0, 0, 0, 0, 0], [0, 0, 0, 0, 0], [0, 0, 0, 1, 0], [0, 0, 1, 1, 0]]]

    def test_in_a_ring_of_six_there_is_nothing_to_see(self):
        assert not sameness(torch.tensor([[0, 1, 2, 3]]), neighbours_of(cycle(6)), window=3).any()

    def test_the_ends_of_a_square(self):
        found = sameness(torch.tensor([[0, 1, 2, 3]]), neighbours_of(cycle(4)), window=3)
        assert found.nonzero().tolist() == [[0, 3, 4]]

    def test_no_farther_than_the_window(self):
        walk = torch.tensor([[0, 1, 2, 3, 0]])
        assert sameness(walk, neighbours_of(cycle(4)), window=4)[0, 4].tolist() == [False] * 3 + [True] + [
            False,
            True,
            False,
        ]
        assert not sameness(walk, neighbours_of(cycle(4)), window=2)[0, 4].any()


class TestWalks:
    def test_they_follow_edges_and_turn_round_at_dead_ends_only(self):
        graph = nx.lollipop_graph(4, 3)
        walks = walks_on(of_matrix(nx.to_numpy_array(graph, dtype=int))).nodes.tolist()
        for walk in walks:
            for here, there in zip(walk, walk[1:], strict=False):
                assert graph.has_edge(here, there)
            for before, here, after in zip(walk, walk[1:], walk[2:], strict=False):
                assert before != after or graph.degree(here) == 1

    def test_every_other_way_has_the_same_chance(self):
        """From the hub of a star with paths of two: each of 4 ways at first; from a node of degree 3, each of 2 ways on."""
        wheel = nx.wheel_graph(5)
        nodes = walks_on(of_matrix(nx.to_numpy_array(wheel, dtype=int)), steps=2, count=4000).nodes
        first = torch.bincount(nodes[nodes[:, 0] == 0][:, 1], minlength=5) / 4000
        assert (first - torch.tensor([0, 0.25, 0.25, 0.25, 0.25])).abs().max() < 0.03
        came = nodes[(nodes[:, 0] == 0) & (nodes[:, 1] == 1)]
        second = torch.bincount(came[:, 2], minlength=5) / len(came)
        ways = sorted(set(wheel[1]) - {0})
        assert second.nonzero().flatten().tolist() == ways
        assert (second[ways] - 0.5).abs().max() < 0.06

    def test_directions_loops_and_parallel_edges_change_nothing(self):
        listed = Data(edge_index=torch.tensor([[1, 1, 2, 2, 0], [0, 0, 1, 2, 1]]), num_nodes=3)
        path = of_matrix([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
        assert torch.equal(walks_on(listed).nodes, walks_on(path).nodes)

    def test_a_node_alone_is_walked_on_the_spot(self):
        walks = walks_on(of_matrix([[1]]), steps=3, count=2)
        assert walks.nodes.tolist() == [[0, 0, 0, 0]] * 2
        assert walks.pairs.tolist() == [[-1, -1, -1]] * 2

    def test_in_training_some_begin_and_in_evaluation_all(self):
        batch = batch_of([cycle(10) for _ in range(40)])
        model = Crawl(PLAIN, start_ratio=0.01)
        joined = neighbours(batch.graphs)
        starts = model.train().walks(batch.graphs, joined).nodes[:, 0]
        assert (torch.bincount(starts // 10, minlength=40) >= 1).all()
        assert len(starts) < 80
        assert model.eval().walks(batch.graphs, joined).nodes[:, 0].tolist() == list(range(400))


def test_a_layer():
    torch.manual_seed(0)
    layer = with_own_norms(CrawlLayer(dim=3, step_dim=2, out_dim=4, window=2))
    x, steps = torch.randn(5, 3, dtype=torch.float64), torch.randn(2, 6, 2, dtype=torch.float64)
    walk = torch.tensor([[0, 1, 2, 0, 1, 3], [3, 1, 0, 2, 1, 0]])
    seen = {v: [] for v in range(5)}
    with torch.no_grad():
        for number in range(2):
            rows = [layer.of_node(x[walk[number, t]]) + layer.of_step(steps[number, t]) for t in range(6)]
            for t in range(1, 5):
                window = sum(layer.conv.weight[:, 0, k] * rows[t - 1 + k] for k in range(3))
                y = layer.mix(norm(layer.norm, window).clamp(min=0)).clamp(min=0)
                seen[int(walk[number, t])].append(y)
        pooled = torch.stack([torch.stack(seen[v]).mean(0) if seen[v] else torch.zeros(4).double() for v in range(5)])
        first, normed, _, second = layer.out
        wanted = layer.residual(x) + second(norm(normed, first(pooled)).clamp(min=0))
        torch.testing.assert_close(layer(x, walk, steps), wanted)


def test_what_a_step_reads():
    """The first node has no step; then the features of the edge that was taken, whichever way it is listed."""
    graph = Data(
        x=torch.zeros(3, 1, dtype=torch.int64),
        edge_index=torch.tensor([[0, 2], [1, 1]]),
        edge_attr=torch.tensor([1, 3]),
    )
    batch = batch_of([graph])
    model = Crawl(SCHEMA, walk_length=2, window=1)
    joined = neighbours(batch.graphs)
    walks = draw_walks(joined, torch.tensor([0]), torch.zeros(1, 2, dtype=torch.float64))
    assert walks.nodes.tolist() == [[0, 1, 2]]
    features = model.steps(batch, joined, walks)[0, :, :4]
    torch.testing.assert_close(features[1:], F.one_hot(torch.tensor([1, 3]), 4).double())
    assert not features[0].any()


def test_it_separates_a_ring_of_six_from_two_triangles():
    graphs = [of_matrix(adjacency) for adjacency in witness_pairs()["C6 / 2 C3"]]
    torch.manual_seed(0)
    with torch.no_grad():
        one, other = Gine(PLAIN).double().eval()(batch_of(graphs))
        torch.testing.assert_close(one, other)
        one, other = Crawl(PLAIN, num_layers=1, hidden_dim=16).double().eval()(batch_of(graphs))
    assert (one - other).abs().max() > 1e-3


def test_predictions_differ_from_seed_to_seed():
    torch.manual_seed(0)
    model = Crawl(SCHEMA, hidden_dim=8).double().eval()
    batch = batch_of(GRAPHS)
    with torch.no_grad():
        first = model(batch)
        assert torch.equal(first, model(batch))
        model.eval_seed = 1
        assert (first != model(batch)).any()


def test_a_walk_must_hold_a_window():
    with pytest.raises(grit.GritError, match="walk_length must be at least window, 8"):
        grit.load_recipe("zinc-crawl", "model.walk_length=7")
    batch = batch_of(GRAPHS, dtype=torch.float32)
    assert Crawl(SCHEMA, walk_length=8, hidden_dim=4)(batch).shape == (len(GRAPHS), 2)
