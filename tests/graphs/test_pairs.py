import networkx as nx
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import grit
from grit.graphs.convert import pack
from grit.graphs.pairs import Pairs, check_pairs_kind, choose_pairs
from tests.graph_strategies import graphs

ANY_GRAPHS = st.lists(graphs(max_nodes=6), min_size=1, max_size=4)


@given(ANY_GRAPHS, st.sampled_from(["all", "edges", "khop-1", "khop-2", "khop-3"]))
def test_layout(data_list, kind):
    packed = pack(data_list)
    pairs = choose_pairs(packed, kind)
    code = pairs.query * packed.num_nodes + pairs.key
    assert (code.diff() > 0).all()  # row-major, nothing twice
    counts = torch.bincount(pairs.query, minlength=packed.num_nodes)
    assert torch.equal(pairs.row_ptr.diff(), counts)
    assert torch.equal(packed.graph_of_node[pairs.query], packed.graph_of_node[pairs.key])
    # An observed edge j -> i belongs to the pair (query i, key j).
    source, target = packed.edge_index
    assert torch.equal(pairs.query[pairs.edge_pair], target)
    assert torch.equal(pairs.key[pairs.edge_pair], source)
    assert torch.equal(pairs.find(pairs.query, pairs.key), torch.arange(pairs.num_pairs))


@given(ANY_GRAPHS)
def test_all_pairs(data_list):
    pairs = choose_pairs(pack(data_list))
    wanted, first = [], 0
    for data in data_list:
        nodes = range(first, first + data.num_nodes)
        wanted += [(i, j) for i in nodes for j in nodes]
        first += data.num_nodes
    assert list(zip(pairs.query.tolist(), pairs.key.tolist(), strict=True)) == wanted


@given(graphs(max_nodes=7), st.integers(1, 4))
def test_khop_is_what_networkx_reaches(data, hops):
    pairs = choose_pairs(pack([data]), f"khop-{hops}")
    graph = nx.DiGraph()
    graph.add_nodes_from(range(data.num_nodes))
    graph.add_edges_from(data.edge_index.t().tolist())
    reached = dict(nx.all_pairs_shortest_path_length(graph, cutoff=hops))
    wanted = sorted((i, j) for j, targets in reached.items() for i in targets)
    assert list(zip(pairs.query.tolist(), pairs.key.tolist(), strict=True)) == wanted


@given(graphs())
def test_edges_is_khop_1(data):
    packed = pack([data])
    edges, khop = choose_pairs(packed, "edges"), choose_pairs(packed, "khop-1")
    assert torch.equal(edges.query, khop.query)
    assert torch.equal(edges.key, khop.key)


def test_find_says_what_is_not_there():
    pairs = Pairs.from_index(torch.tensor([1, 0, 0]), torch.tensor([1, 1, 0]), 2)
    assert pairs.query.tolist() == [0, 0, 1]
    assert pairs.find(torch.tensor([1, 1, 0]), torch.tensor([0, 1, 1])).tolist() == [-1, 2, 1]


@pytest.mark.parametrize("kind", ["some", "khop-0", "khop-", "khop-x", "khop-2.5", ""])
def test_unknown_kinds(kind):
    with pytest.raises(grit.GritError, match="'all', 'edges' or 'khop-N'"):
        check_pairs_kind(kind)


@pytest.mark.parametrize(
    ("query", "key", "message"),
    [
        ([0, 1], [0], "vectors of one length"),
        ([0, 1, 2], [0, 1, 2], "outside 0..1"),
        ([0, 1], [-1, 1], "key refers to nodes outside"),
        ([0, 0, 1], [0, 0, 1], "listed twice"),
        ([0, 0], [0, 1], "node 1 has no pair to attend to"),
    ],
)
def test_bad_lists(query, key, message):
    with pytest.raises(grit.GritError, match=message):
        Pairs.from_index(torch.tensor(query), torch.tensor(key), 2)


def test_no_nodes():
    nothing = torch.zeros(0).long()
    with pytest.raises(grit.GritError, match="num_nodes must be at least 1, got 0"):
        Pairs.from_index(nothing, nothing, 0)


def test_indices_are_64_bits_wide():
    here = torch.zeros(1, dtype=torch.int64)
    with pytest.raises(grit.GritError, match="key must be int64, got torch.int32. Use .long"):
        Pairs(query=here, key=here.int(), row_ptr=torch.tensor([0, 1]), edge_pair=here[:0])


def test_constructor_checks_shapes():
    one = torch.tensor([0])
    with pytest.raises(grit.GritError, match="vectors of one length"):
        Pairs(query=one, key=torch.tensor([0, 1]), row_ptr=torch.tensor([0, 1]), edge_pair=one)
    with pytest.raises(grit.GritError, match="row_ptr must go from 0 to 1"):
        Pairs(query=one, key=one, row_ptr=torch.tensor([0, 2]), edge_pair=one)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"query": torch.tensor([0, 1, 0, 1])}, "query does not follow row_ptr"),
        ({"query": torch.tensor([1, 1, 0, 0])}, "query does not follow row_ptr"),
        ({"row_ptr": torch.tensor([0, 1, 4])}, "query does not follow row_ptr"),
        ({"row_ptr": torch.tensor([1, 2, 4])}, "row_ptr must go from 0 to 4"),
        ({"row_ptr": torch.tensor([0, 4, 4])}, "node 1 has no pair to attend to"),
        ({"row_ptr": torch.tensor([0, 5, 4])}, "node 1 has no pair to attend to"),
        ({"key": torch.tensor([0, 1, 0, 2])}, r"key refers to nodes outside 0\.\.1"),
        ({"key": torch.tensor([-1, 1, 0, 1])}, r"key refers to nodes outside 0\.\.1"),
        ({"edge_pair": torch.tensor([4])}, r"edge_pair refers to pairs outside 0\.\.3"),
        ({"edge_pair": torch.tensor([2, -1])}, r"edge_pair refers to pairs outside 0\.\.3"),
    ],
)
def test_constructor_checks_values(changes, message):
    fields = {
        "query": torch.tensor([0, 0, 1, 1]),
        "key": torch.tensor([0, 1, 0, 1]),
        "row_ptr": torch.tensor([0, 2, 4]),
        "edge_pair": torch.tensor([1, 3]),
    }
    assert Pairs(**fields).num_pairs == 4
    with pytest.raises(grit.GritError, match=message):
        Pairs(**{**fields, **changes})


def test_keys_must_increase_within_a_row():
    for key in ([1, 0], [0, 0]):
        with pytest.raises(grit.GritError, match="key must increase"):
            Pairs(
                query=torch.tensor([0, 0, 1]),
                key=torch.tensor([*key, 1]),
                row_ptr=torch.tensor([0, 2, 3]),
                edge_pair=torch.zeros(0, dtype=torch.int64),
            )
