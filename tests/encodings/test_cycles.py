"""Cycle counts beside a search through all orders of all sets of nodes; and graphs that have too many."""

from itertools import combinations, permutations

import networkx as nx
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

import grit
from tests.graph_strategies import graphs


def encoded(graph, size, pairs="all"):
    return grit.PairBatch.from_data_list([graph], size, encoding="cycles", pairs=pairs)


def by_trial(graph, size):
    """(n, size - 2) and (n, n, size - 2): every set of nodes, in every order that differs as a cycle."""
    n = graph.num_nodes
    joined = {frozenset(edge) for edge in graph.edge_index.T.tolist() if edge[0] != edge[1]}
    node, pair = torch.zeros(n, size - 2), torch.zeros(n, n, size - 2)
    for length in range(3, size + 1):
        for chosen in combinations(range(n), length):
            for others in permutations(chosen[1:]):
                cycle = (chosen[0], *others)
                steps = list(zip(cycle, cycle[1:] + cycle[:1], strict=True))
                if others[0] < others[-1] and all(frozenset(step) in joined for step in steps):
                    node[list(cycle), length - 3] += 1
                    for one, other in steps:
                        pair[one, other, length - 3] += 1
                        pair[other, one, length - 3] += 1
    return node, pair


@settings(max_examples=60)
@given(graph=graphs(max_nodes=7), size=st.integers(3, 7))
def test_counts_are_those_of_a_search_through_everything(graph, size):
    batch = encoded(graph, size)
    node, pair = by_trial(graph, size)
    assert torch.equal(batch.node_encoding, node)
    assert torch.equal(batch.pair_encoding, pair.flatten(0, 1))


def test_counts_of_well_known_graphs():
    """The complete graph of 5 nodes has 10, 15 and 12 cycles of 3, 4 and 5; each node is on the share k / 5 of them."""
    batch = encoded(of(nx.complete_graph(5)), 5)
    assert batch.node_encoding.tolist() == [[6, 12, 12]] * 5
    petersen = encoded(of(nx.petersen_graph()), 6)
    assert petersen.node_encoding.sum(0).tolist() == [0, 0, 12 * 5, 10 * 6]


def test_a_directed_cycle_counts_on_its_edges():
    graph = Data(edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]]), num_nodes=3)
    batch = encoded(graph, 3, pairs="edges")
    assert batch.node_encoding.tolist() == [[1], [1], [1]]
    own = batch.pairs.query == batch.pairs.key
    assert batch.pair_encoding[own].tolist() == [[0]] * 3
    assert batch.pair_encoding[~own].tolist() == [[1]] * 3


@pytest.mark.parametrize("size", [1, 2])
def test_there_are_no_shorter_cycles_than_triangles(size):
    batch = encoded(of(nx.complete_graph(4)), size)
    assert batch.node_encoding.shape == (4, 0)
    assert batch.pair_encoding.shape == (16, 0)


@pytest.mark.parametrize("graph", [nx.complete_graph(100), nx.complete_bipartite_graph(60, 60)], ids=str)
def test_too_many_cycles_end_in_an_error(graph):
    with pytest.raises(
        grit.GritError, match=r"graph with 1\d0 nodes and .* edges has too many cycles of up to 8 nodes"
    ):
        encoded(of(graph), 8)


def of(graph):
    edges = [pair for edge in graph.edges for pair in (edge, edge[::-1])]
    return Data(edge_index=torch.tensor(edges).t(), num_nodes=graph.number_of_nodes())
