"""The resistance encoding beside networkx and beside networks that can be computed by hand."""

import networkx as nx
import pytest
import torch
from hypothesis import given
from torch_geometric.data import Data

import grit
from grit.encodings.resistance import resistance_encoding
from grit.encodings.spd import spd_encoding
from grit.graphs.convert import pack
from tests.graph_strategies import graphs


def encoded(data, walk_steps=3):
    packed = pack([data])
    return resistance_encoding(packed, grit.choose_pairs(packed), walk_steps, torch.float64)


def resistance(data):
    return encoded(data).pair[:, -1].view(data.num_nodes, data.num_nodes)


def both_directions(graph):
    edges = [pair for edge in graph.edges for pair in (edge, edge[::-1])]
    return Data(edge_index=torch.tensor(edges).reshape(-1, 2).t(), num_nodes=graph.number_of_nodes())


@given(graphs())
def test_as_networkx_has_it_component_by_component(data):
    found = resistance(data)
    graph = nx.Graph()
    graph.add_nodes_from(range(data.num_nodes))
    graph.add_edges_from((i, j) for i, j in data.edge_index.t().tolist() if i != j)
    wanted = torch.full_like(found, -1.0).fill_diagonal_(0.0)
    for component in nx.connected_components(graph):
        if len(component) > 1:
            for i, row in nx.resistance_distance(graph.subgraph(component)).items():
                for j, value in row.items():
                    wanted[i, j] = value
    torch.testing.assert_close(found, wanted, atol=1e-9, rtol=0)


@given(graphs())
def test_the_first_channels_are_shortest_path_distances(data):
    packed = pack([data])
    wanted = spd_encoding(packed, grit.choose_pairs(packed), 3, torch.float64).pair
    assert torch.equal(encoded(data).pair[:, :3], wanted)


@pytest.mark.parametrize("n", [3, 4, 7])
def test_a_ring_is_two_ways_in_parallel(n):
    found = resistance(both_directions(nx.cycle_graph(n)))
    wanted = [k * (n - k) / n for k in range(n)]
    torch.testing.assert_close(found[0], torch.tensor(wanted, dtype=torch.float64))


def test_a_path_is_in_series():
    found = resistance(both_directions(nx.path_graph(60)))
    torch.testing.assert_close(found[0], torch.arange(60, dtype=torch.float64))
