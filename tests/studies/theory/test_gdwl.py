from itertools import combinations

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

import grit
from grit.studies.theory.gdwl import (
    NEVER,
    classify,
    common_degree,
    edges,
    effective_resistance,
    folklore,
    full_walks,
    gdwl,
    is_finer,
    least_return_steps,
    least_walk_steps,
    path_lengths,
    refine,
    resistances,
    return_classes,
    scaled_walks,
    shortest_paths,
    undistinguished,
    walks,
)
from tests.graph_strategies import graphs, permuted

DISTANCES = {"1-WL": edges, "SPD": shortest_paths, "RD": resistances, "RRWP(3)": walks(3), "RRWP(n)": full_walks}
simple_graphs = graphs(undirected=True, simple=True)


def adjacency(data: Data) -> np.ndarray:
    out = np.zeros((data.num_nodes, data.num_nodes), dtype=np.int64)
    out[tuple(data.edge_index.numpy())] = 1
    return out


def of(graph: nx.Graph) -> np.ndarray:
    return nx.to_numpy_array(graph, dtype=np.int64)


def cycles(*lengths: int) -> np.ndarray:
    return of(nx.disjoint_union_all([nx.cycle_graph(n) for n in lengths]))


def prism(sides: int) -> np.ndarray:
    return of(nx.circular_ladder_graph(sides))


PAIRS = {
    "dodecahedron": (of(nx.dodecahedral_graph()), of(nx.desargues_graph())),
    "prism": (prism(3), of(nx.complete_bipartite_graph(3, 3))),
    "C6": (cycles(6), cycles(3, 3)),
    "C8": (cycles(8), cycles(4, 4)),
    "ladder": (of(nx.circulant_graph(16, [1, 8])), prism(8)),
    "cube": (of(nx.cubical_graph()), of(nx.circulant_graph(8, [1, 4]))),
    "pappus": (of(nx.pappus_graph()), prism(9)),
    "kantor": (of(nx.moebius_kantor_graph()), prism(8)),
}
# 1-WL, SPD, RD; least K of RRWP, of RWSE; 2-FWL
FACTS = {
    "dodecahedron": (False, False, True, 4, 6, True),
    "prism": (False, False, True, 3, 4, True),
    "C6": (False, True, True, 3, 4, True),
    "C8": (False, True, True, 3, 5, True),
    "ladder": (False, True, True, 5, 9, True),
    "cube": (False, True, True, 3, 5, True),
    "pappus": (False, True, True, 3, 5, True),
    "kantor": (False, True, True, 3, 5, True),
}


@pytest.mark.parametrize("name", PAIRS)
def test_known_pairs(name):
    pair = PAIRS[name]
    apart = [len(set(gdwl(pair, distance))) == 2 for distance in (edges, shortest_paths, resistances)]
    found = (*apart, least_walk_steps(pair), least_return_steps(pair), len(set(folklore(pair))) == 2)
    assert found == FACTS[name]


def test_least_walk_steps_is_where_the_test_changes():
    for name in ("dodecahedron", "ladder"):
        least = FACTS[name][3]
        assert len(set(gdwl(PAIRS[name], walks(least - 1)))) == 1
        assert len(set(gdwl(PAIRS[name], walks(least)))) == 2
        returns = FACTS[name][4]
        assert len(set(return_classes(PAIRS[name], returns - 1))) == 1
        assert len(set(return_classes(PAIRS[name], returns))) == 2


@given(simple_graphs, st.randoms(use_true_random=False))
def test_isomorphic_graphs_are_never_told_apart(data, random):
    order = list(range(data.num_nodes))
    random.shuffle(order)
    pair = (adjacency(data), adjacency(permuted(data, torch.tensor(order))))
    for name, distance in DISTANCES.items():
        assert len(set(gdwl(pair, distance))) == 1, name
        first, second = refine(distance(pair))
        assert first == [second[order[v]] for v in range(len(order))], name
    assert len(set(folklore(pair))) == 1
    assert len(set(return_classes(pair, 5))) == 1


@given(st.lists(simple_graphs, min_size=2, max_size=4))
def test_full_walks_refine_shortest_paths_which_refine_edges(data_list):
    listed = [adjacency(data) for data in data_list]
    colours = [sum(refine(distance(listed)), []) for distance in (full_walks, shortest_paths, edges)]
    assert is_finer(colours[0], colours[1])
    assert is_finer(colours[1], colours[2])
    classes = [gdwl(listed, distance) for distance in (full_walks, shortest_paths, edges)]
    assert is_finer(classes[0], classes[1])
    assert is_finer(classes[1], classes[2])
    assert is_finer(folklore(listed), classes[2])


@given(simple_graphs)
def test_colours_are_stable(data):
    (colouring,) = edges([adjacency(data)])
    (colours,) = refine([colouring])
    again = [tuple(sorted(zip(row, colours, strict=True))) for row in colouring]
    assert is_finer(colours, again)


@given(simple_graphs, st.integers(1, 6))
def test_walks_are_equal_where_rrwp_is(data, walk_steps):
    (colouring,) = walks(walk_steps)([adjacency(data)])
    values = grit.rrwp(data.edge_index, data.num_nodes, walk_steps, dtype=torch.float64).flatten(0, 1)
    colours = torch.tensor(colouring).flatten()
    same = torch.cdist(values, values, p=torch.inf) < 1e-9
    assert torch.equal(same, colours[:, None] == colours[None, :])


@given(simple_graphs)
def test_distances_are_those_of_networkx(data):
    graph = nx.from_numpy_array(adjacency(data))
    lengths, resistance = path_lengths(adjacency(data)), effective_resistance(adjacency(data))
    expected = dict(nx.all_pairs_shortest_path_length(graph))
    assert lengths.tolist() == [[expected[i].get(j, NEVER) for j in graph] for i in graph]
    for component in nx.connected_components(graph):
        if len(component) > 1:
            other = nx.resistance_distance(graph.subgraph(component))
            for i, j in combinations(sorted(component), 2):
                assert float(resistance[i][j]) == pytest.approx(other[i][j])
    assert all(resistance[i][j] == NEVER for i in graph for j in graph if lengths[i, j] == NEVER)


def test_resistance_by_hand():
    # A triangle with a tail: two resistors in series beside one, and then one more.
    graph = of(nx.Graph([(0, 1), (1, 2), (0, 2), (2, 3)]))
    resistance = effective_resistance(graph)
    assert [str(resistance[0][j]) for j in range(4)] == ["0", "2/3", "2/3", "5/3"]


def test_walks_stay_exact_beyond_64_bits():
    graph = of(nx.circulant_graph(41, [1, 6]))
    scale = common_degree([graph])
    *_, last = scaled_walks(graph, scale, 60)
    assert scale == 4
    assert {sum(row) for row in last.tolist()} == {4**59}


def test_1wl_is_that_of_networkx():
    listed = [graph for graph in nx.graph_atlas_g() if 2 <= len(graph) <= 6]
    ours = gdwl([of(graph) for graph in listed], edges)
    for graph in listed:
        nx.set_node_attributes(graph, "same", "label")
    hashes = [(len(graph), nx.weisfeiler_lehman_graph_hash(graph, node_attr="label", iterations=6)) for graph in listed]
    assert is_finer(ours, hashes)
    assert is_finer(hashes, ours)


def test_graphs_of_other_sizes_and_without_edges():
    alone, two, three = (np.zeros((n, n), dtype=np.int64) for n in (1, 2, 3))
    for distance in DISTANCES.values():
        assert gdwl([alone, two, three, two], distance) == [0, 1, 2, 1]
    assert folklore([alone, two, three, two]) == [0, 1, 2, 1]
    assert least_walk_steps([two, two]) is None


def test_folklore_tells_a_complete_graph_from_others():
    complete = 1 - np.eye(4, dtype=np.int64)
    assert folklore([complete, complete, of(nx.cycle_graph(4))]) == [0, 0, 1]


def test_classes():
    assert classify([[1, 2], [2, 1], [2, 2]]) == [0, 0, 1]
    assert undistinguished([0, 0, 0, 1, 2, 2]) == 4
    assert is_finer([0, 1, 2], [0, 0, 1])
    assert not is_finer([0, 0, 1], [0, 1, 2])


@pytest.mark.parametrize("walk_steps", range(61, 68))
def test_walks_are_exact_on_both_sides_of_64_bits(walk_steps):
    """A path of three nodes, c = 2: from an end, all walks are at the middle after an odd number of steps, else at both ends."""
    *_, last = scaled_walks(of(nx.path_graph(3)), 2, walk_steps)
    steps = walk_steps - 1
    expected = [0, 2**steps, 0] if steps % 2 else [2 ** (steps - 1), 0, 2 ** (steps - 1)]
    assert last.tolist()[0] == expected
    assert {sum(row) for row in last.tolist()} == {2**steps}
