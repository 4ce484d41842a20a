"""Structures: what a batch carries is what its graphs have, numbered over the batch."""

import tracemalloc

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

import grit
from grit.batches.pair_batch import PairBatch
from grit.encodings.structures import STRUCTURES, StructureKind
from grit.errors import GritError
from grit.testing.graphs import awkward_graphs
from tests.graph_strategies import featured_graphs, graphs


def both_directions(graph):
    edges = [pair for edge in graph.edges for pair in (edge, edge[::-1])]
    return Data(edge_index=torch.tensor(edges).t(), num_nodes=graph.number_of_nodes())


def of_batch(graphs, name):
    return PairBatch.from_data_list(graphs, 1, encoding="none", structures=(name,)).structures[name]


def rings_of(graphs, size):
    structure = of_batch(graphs, f"rings-{size}")
    rings = [set() for _ in range(structure.counts["ring"])]
    for ring, node in structure.parts["node"].T.tolist():
        rings[ring].add(node)
    return sorted(map(sorted, rings))


class TestRings:
    def test_of_two_molecules(self):
        naphthalene = nx.Graph([(i, (i + 1) % 10) for i in range(10)] + [(0, 5)])
        propane = nx.path_graph(3)
        assert rings_of([both_directions(propane), both_directions(naphthalene)], 10) == [
            [3, 4, 5, 6, 7, 8],
            [3, 8, 9, 10, 11, 12],
        ]

    def test_larger_ones_are_left_out(self):
        assert rings_of([both_directions(nx.cycle_graph(7))], 6) == []
        assert rings_of([both_directions(nx.cycle_graph(7))], 7) == [list(range(7))]

    def test_a_cycle_with_a_chord_is_no_ring(self):
        square = nx.cycle_graph(4)
        square.add_edge(0, 2)
        assert rings_of([both_directions(square)], 4) == [[0, 1, 2], [0, 2, 3]]

    def test_every_listed_edge_of_a_ring(self):
        triangle = both_directions(nx.cycle_graph(3))
        structure = of_batch([both_directions(nx.path_graph(2)), triangle], "rings-3")
        assert structure.parts["edge"].T.tolist() == [[0, edge] for edge in range(2, 8)]

    @given(graph=graphs(max_nodes=8), size=st.integers(3, 8))
    def test_as_networkx_finds_them(self, graph, size):
        simple = nx.Graph(edge for edge in graph.edge_index.T.tolist() if edge[0] != edge[1])
        wanted = (sorted(cycle) for cycle in nx.chordless_cycles(simple, length_bound=size) if len(cycle) > 2)
        assert rings_of([graph], size) == sorted(wanted)

    @pytest.mark.parametrize("graph", [nx.gnp_random_graph(120, 0.4, seed=0), nx.grid_graph((40, 40))], ids=str)
    def test_too_many_end_in_an_error(self, graph):
        """Dense graphs have many, and large sparse ones many long ones: the search gives up after some seconds."""
        numbered = nx.convert_node_labels_to_integers(graph)
        with pytest.raises(GritError, match=r"too many rings \(cycles without a chord\) of up to 18 nodes: .* [1-9]"):
            of_batch([both_directions(numbered)], "rings-18")


class TestEgonets:
    @given(graph=graphs(max_nodes=7), size=st.integers(0, 4))
    def test_as_networkx_finds_them(self, graph, size):
        joined = nx.Graph(graph.edge_index.T.tolist())
        joined.add_nodes_from(range(graph.num_nodes))
        steps = dict(nx.all_pairs_shortest_path_length(joined, cutoff=size))
        structure = of_batch([graph], f"egonets-{size}")
        number, *members = structure.parts["member"].tolist()
        wanted = [(root, node, steps[root][node]) for root in sorted(steps) for node in sorted(steps[root])]
        assert list(zip(*members, strict=True)) == wanted
        assert number == list(range(len(wanted))) == list(range(structure.counts["member"]))
        found = [
            (wanted[source][:2], wanted[target][:2], edge)
            for source, target, edge in structure.parts["edge"].T.tolist()
        ]
        assert sorted(found) == sorted(
            ((root, source), (root, target), edge)
            for edge, (source, target) in enumerate(graph.edge_index.T.tolist())
            for root in steps
            if source in steps[root] and target in steps[root]
        )

    def test_too_large_ones_end_in_an_error(self):
        dense = both_directions(nx.complete_graph(150))
        with pytest.raises(
            GritError, match=r"ego nets of 2 steps in a graph with 150 nodes and 22,350 .* too large: 3,"
        ):
            of_batch([dense], "egonets-2")


def steps_of(data, size, first, last):
    """[{edge as (source, target, number): share} for each step] of the shortest paths between two nodes."""
    structure = of_batch([data], f"paths-{size}")
    steps = []
    for (i, j, edge, step), share in zip(structure.parts["edge"].T.tolist(), structure.parts["share"], strict=True):
        if (i, j) == (first, last):
            steps += [{} for _ in range(step + 1 - len(steps))]
            steps[step][(*data.edge_index[:, edge].tolist(), edge)] = float(share)
    return steps


class TestPaths:
    def test_where_there_is_one(self):
        path = both_directions(nx.path_graph(4))
        assert steps_of(path, 9, 0, 3) == [{(0, 1, 0): 1.0}, {(1, 2, 2): 1.0}, {(2, 3, 4): 1.0}]
        assert steps_of(path, 9, 2, 0) == [{(2, 1, 3): 1.0}, {(1, 0, 1): 1.0}]
        assert steps_of(path, 9, 1, 1) == []

    def test_two_have_a_half_each(self):
        square = both_directions(nx.cycle_graph(4))
        first, second = steps_of(square, 9, 0, 2)
        assert {edge[:2]: share for edge, share in first.items()} == {(0, 1): 0.5, (0, 3): 0.5}
        assert {edge[:2]: share for edge, share in second.items()} == {(1, 2): 0.5, (3, 2): 0.5}

    def test_parallel_edges_make_paths_of_their_own(self):
        data = Data(edge_index=torch.tensor([[0, 0, 1, 0, 3], [1, 1, 2, 3, 2]]), num_nodes=4)
        third = pytest.approx(1 / 3)
        first, second = steps_of(data, 9, 0, 2)
        assert first == {(0, 1, 0): third, (0, 1, 1): third, (0, 3, 3): third}
        assert second == {(1, 2, 2): pytest.approx(2 / 3), (3, 2, 4): third}

    def test_only_the_first_steps(self):
        assert len(steps_of(both_directions(nx.path_graph(6)), 2, 0, 5)) == 2

    def test_directions_and_loops(self):
        data = Data(edge_index=torch.tensor([[0, 1, 1], [1, 1, 2]]), num_nodes=3)
        assert steps_of(data, 9, 0, 2) == [{(0, 1, 0): 1.0}, {(1, 2, 2): 1.0}]
        assert steps_of(data, 9, 2, 0) == []

    @given(data=featured_graphs(max_nodes=7))
    def test_shares_of_a_step_add_up_to_one(self, data):
        structure = of_batch([data], "paths-9")
        total = {}
        for (i, j, _, step), share in zip(structure.parts["edge"].T.tolist(), structure.parts["share"], strict=True):
            total[i, j, step] = total.get((i, j, step), 0.0) + float(share)
        graph = nx.DiGraph(data.edge_index.t().tolist())
        wanted = {
            (i, j, step): pytest.approx(1.0)
            for i, row in nx.all_pairs_shortest_path_length(graph)
            for j, length in row.items()
            for step in range(length)
        }
        assert total == wanted


@pytest.mark.parametrize("name", sorted(STRUCTURES))
class TestEveryStructure:
    def test_a_batch_is_its_graphs_one_by_one(self, name):
        check_one_by_one(name, awkward_graphs())

    @given(graphs=st.lists(featured_graphs(max_nodes=6), min_size=1, max_size=4))
    def test_of_any_graphs(self, name, graphs):
        check_one_by_one(name, graphs)

    def test_it_moves_with_its_batch(self, name):
        batch = PairBatch.from_data_list(awkward_graphs(), 1, encoding="none", structures=(f"{name}-4",))
        moved = batch.to("meta").structures[f"{name}-4"]
        assert all(part.device.type == "meta" for part in moved.parts.values())
        assert moved.counts == batch.structures[f"{name}-4"].counts


def check_one_by_one(name, graphs):
    kind = STRUCTURES[name]
    whole = of_batch(graphs, f"{name}-4")
    alone = [of_batch([data], f"{name}-4") for data in graphs]
    first = {"node": 0, "edge": 0, "value": 0, **dict.fromkeys(kind.counts, 0)}
    at = dict.fromkeys(kind.parts, 0)
    for data, each in zip(graphs, alone, strict=True):
        for part, rows in kind.parts.items():
            length = each.parts[part].shape[-1]
            here = whole.parts[part][..., at[part] : at[part] + length]
            shift = torch.tensor([first[row] for row in rows]).unsqueeze(1) if rows else 0
            assert torch.equal(here, each.parts[part] + shift)
            at[part] += length
        steps = {"node": data.num_nodes, "edge": data.num_edges, "value": 0, **each.counts}
        first = {what: count + steps[what] for what, count in first.items()}
    assert whole.counts == {own: sum(each.counts[own] for each in alone) for own in kind.counts}


def test_what_is_kept_of_a_molecule_is_small():
    """A tree of 23 nodes, as large as ZINC's molecules: 256 MB hold those of its 12,000."""
    trees = [both_directions(nx.random_labeled_tree(23, seed=seed)) for seed in range(50)]
    of_batch(trees[:1], "paths-20")
    tracemalloc.start()
    of_batch(trees, "paths-20")
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept / 49 < 2**28 / 12_000


def test_numbers_are_wide_and_exact_in_a_batch(monkeypatch):
    whole, real = [[-1, 100, 40_000, 2**40], [1, 2, 3, 4]], [[0.5, 1.0], [1 / 3, 1e-300]]
    kind = StructureKind(
        lambda graph, size: {
            "whole": np.array([whole[graph.num_nodes - 1]]),
            "real": np.array(real[graph.num_nodes - 1]),
        },
        parts={"whole": ("value",), "real": ()},
        counts={},
    )
    monkeypatch.setitem(STRUCTURES, "numbers", kind)
    one, two = (Data(edge_index=torch.empty(2, 0, dtype=torch.int64), num_nodes=n) for n in (1, 2))
    for _ in range(2):  # computed, then remembered
        batch = PairBatch.from_data_list([one, two], 1, encoding="none", structures=("numbers-1",), dtype=torch.float64)
        parts = batch.structures["numbers-1"].parts
        assert parts["whole"].dtype == torch.int64
        assert parts["whole"].tolist() == [sum(whole, [])]
        assert parts["real"].tolist() == sum(real, [])


@pytest.mark.parametrize("name", ["rings", "rings-", "cells-3", "rings-3.5", "-3"])
def test_an_unknown_one_is_refused(name):
    with pytest.raises(GritError, match="no structure"):
        grit.PairBatch.from_data_list(awkward_graphs(), 1, structures=(name,))
