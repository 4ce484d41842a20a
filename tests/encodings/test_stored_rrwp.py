"""RRWP stored on graphs is used if it is theirs, and refused if it is not."""

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data

import grit
from tests.golden import Case
from tests.graph_strategies import graphs, permuted, weighted_graphs

ANY = st.one_of(graphs(), weighted_graphs())
REMEDY = "Apply AddRRWP after the last change of nodes, edges or weights; or delete data.rrwp"


def path(**fields):
    """0 - 1 - 2 - 3, and 4 alone."""
    return Data(edge_index=torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]]), num_nodes=5, **fields)


def batches(data_list, walk_steps):
    """The graphs by the two ways into a batch."""
    yield lambda: grit.PairBatch.from_data_list(data_list, walk_steps)
    yield lambda: grit.PairBatch.from_pyg(Batch.from_data_list(data_list), walk_steps)


def refused(data_list, walk_steps, message):
    for make in batches(data_list, walk_steps):
        with pytest.raises(grit.GritError, match=message) as caught:
            make()
        assert REMEDY in str(caught.value)


def same(one, other):
    torch.testing.assert_close(one.node_encoding, other.node_encoding)
    torch.testing.assert_close(one.pair_encoding, other.pair_encoding)
    torch.testing.assert_close(one.log_degree, other.log_degree)


def bare(data):
    """The same graph without what was stored."""
    weights = {"edge_weight": data.edge_weight} if "edge_weight" in data else {}
    return Data(edge_index=data.edge_index, num_nodes=data.num_nodes, **weights)


@given(
    st.one_of(st.lists(graphs(), min_size=1, max_size=3), st.lists(weighted_graphs(), min_size=1, max_size=3)),
    st.integers(1, 5),
)
def test_what_the_transform_stored_is_accepted(data_list, walk_steps):
    computed = grit.PairBatch.from_data_list(data_list, walk_steps)
    for make in batches([grit.AddRRWP(walk_steps)(data) for data in data_list], walk_steps):
        same(make(), computed)


@pytest.mark.parametrize("name", ["rrwp_k21_mixed", "rrwp_k8_selfloop_multi", "rrwp_k2"])
def test_what_the_released_code_stored_is_accepted(name):
    case = Case(name)
    batch = grit.PairBatch.from_data_list(case.data_list(with_rrwp=True), case.meta["K"])
    assert torch.equal(batch.node_encoding, case["rrwp.abs"])


@given(ANY, st.integers(1, 4), st.data())
def test_a_subgraph_never_gets_values_that_are_not_its_own(data, walk_steps, draw):
    kept = draw.draw(st.lists(st.integers(0, data.num_nodes - 1), min_size=1, unique=True).map(sorted))
    part = grit.AddRRWP(walk_steps)(data).subgraph(torch.tensor(kept))
    wanted = grit.PairBatch.from_data_list([bare(part)], walk_steps)
    for make in batches([part], walk_steps):
        try:
            got = make()
        except grit.GritError as error:
            assert REMEDY in str(error)
            assert len(kept) < data.num_nodes
        else:
            same(got, wanted)


@given(ANY, st.integers(1, 4), st.data())
def test_dropped_edges_never_keep_their_values(data, walk_steps, draw):
    assume(data.num_edges > 0)
    dropped = draw.draw(st.integers(0, data.num_edges - 1))
    encoded = grit.AddRRWP(walk_steps)(data)
    kept = torch.arange(data.num_edges) != dropped
    encoded.edge_index = encoded.edge_index[:, kept]
    has_weight = True
    if "edge_weight" in data:
        encoded.edge_weight = encoded.edge_weight[kept]
        source = data.edge_index[0] == data.edge_index[0, dropped]
        has_weight = data.edge_weight[dropped] > 1e-3 * data.edge_weight[source].sum()
    if has_weight:
        refused([grit.AddRRWP(walk_steps)(data), encoded], walk_steps, "graph 1: the RRWP stored with it is not that")


@given(graphs(), st.randoms())
def test_renumbered_nodes_do_not_keep_the_values_of_others(data, random):
    order = list(range(data.num_nodes))
    random.shuffle(order)
    encoded, moved = grit.AddRRWP(3)(data), permuted(data, torch.tensor(order))
    encoded.edge_index = moved.edge_index
    wanted = grit.rrwp(moved.edge_index, data.num_nodes, 3)
    if torch.allclose(wanted, grit.rrwp(data.edge_index, data.num_nodes, 3)):
        same(grit.PairBatch.from_data_list([encoded], 3), grit.PairBatch.from_data_list([moved], 3))
    else:
        refused([encoded], 3, "graph 0: the RRWP stored with it is not that of its edges")


def test_messages_say_what_is_wrong():
    part = grit.AddRRWP(3)(path()).subgraph(torch.tensor([0, 1, 2]))
    assert part.rrwp.shape == (3, 3)  # PyG cuts what has a row for each node, and nothing else
    refused([part], 3, r"rrwp_index refers to nodes outside 0\.\.2")
    dropped = grit.AddRRWP(3)(path())
    dropped.edge_index = dropped.edge_index[:, :-1]
    refused([path_with_values(), dropped], 3, "graph 1: .* to go from node 3 to node 2 in one step is 0, stored is 1")
    added = grit.AddRRWP(3)(path())
    added.edge_index = torch.cat([added.edge_index, torch.tensor([[4], [0]])], 1)
    refused([path_with_values(), added], 3, "from node 4 to node 0 in one step is 1, stored is none")
    doubled = grit.AddRRWP(1)(path())
    doubled.edge_index = torch.cat([doubled.edge_index, torch.tensor([[0], [1]])], 1)
    refused([doubled], 1, "log_deg of node 0 is 0.6931, expected 1.099")
    weighted = grit.AddRRWP(3)(path())
    weighted.edge_weight = torch.tensor([1.0, 1, 3, 1, 1, 1])
    refused([weighted], 3, "from node 1 to node 0 in one step is 0.25, stored is 0.5")


def path_with_values():
    return grit.AddRRWP(3)(path())


def test_values_that_passed_for_other_indices_in_a_batch():
    """In a PyG batch, indices beyond a graph's nodes point at the nodes of the next graph."""
    part = grit.AddRRWP(3)(path()).subgraph(torch.tensor([0, 1, 2, 3]))
    batch = Batch.from_data_list([part, path_with_values()])
    with pytest.raises(grit.GritError, match="graph 1: .* lists the walks from node 0 to node 0 twice"):
        grit.PairBatch.from_pyg(batch, 3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rrwp_index": torch.zeros(2, 15)}, "rrwp_index must be a tensor of integers"),
        ({"rrwp_val": [[1.0]]}, "rrwp_val must be a tensor of floating-point numbers"),
        ({"rrwp_index": torch.zeros(15).long()}, r"rrwp_index has shape \(15,\), expected \(2, Q\)"),
        ({"rrwp_val": torch.ones(10, 3)}, r"rrwp_val has shape \(10, 3\), expected \(15, K\)"),
        ({"rrwp": torch.ones(4, 3)}, r"rrwp has shape \(4, 3\), expected \(5, 3\) for 5 nodes"),
        ({"rrwp": torch.ones(5, 3)}, "rrwp and rrwp_val disagree about node 0"),
        ({"log_deg": torch.ones(5, 1)}, r"log_deg has shape \(5, 1\), expected \(5,\)"),
        ({"log_deg": torch.full((5,), torch.nan)}, "log_deg of node 0 is nan"),
    ],
)
def test_values_that_cannot_be_read(changes, message):
    data = path_with_values()
    assert data.rrwp_val.shape == (15, 3)
    for name, value in changes.items():
        data[name] = value
    with pytest.raises(grit.GritError, match=f"graph 0: .*{message}"):
        grit.PairBatch.from_data_list([data], 3)


def test_pairs_of_two_graphs():
    batch = Batch.from_data_list([path_with_values(), path_with_values()])
    batch.rrwp_index = torch.cat([batch.rrwp_index, torch.tensor([[5], [0]])], 1)
    batch.rrwp_val = torch.cat([batch.rrwp_val, torch.zeros(1, 3)])
    with pytest.raises(grit.GritError, match="graph 0: .* rrwp_index joins nodes of two graphs"):
        grit.PairBatch.from_pyg(batch, 3)


def test_without_rrwp_or_with_other_steps_it_is_computed():
    stale = path_with_values()
    stale.edge_index = stale.edge_index[:, 1:]
    wanted = grit.PairBatch.from_data_list([bare(stale)], 4)
    same(grit.PairBatch.from_data_list([stale], 4), wanted)
    part = path_with_values().subgraph(torch.tensor([0, 1, 2]))
    same(grit.PairBatch.from_data_list([part], 4), grit.PairBatch.from_data_list([bare(part)], 4))
    del stale.rrwp
    same(grit.PairBatch.from_data_list([stale], 3), grit.PairBatch.from_data_list([bare(stale)], 3))


@given(ANY, st.integers(1, 4), st.integers(1, 3))
def test_more_steps_than_asked_for_are_not_taken(data, walk_steps, more):
    wanted = grit.PairBatch.from_data_list([data], walk_steps)
    for make in batches([grit.AddRRWP(walk_steps + more)(data)], walk_steps):
        assert make().pair_encoding.shape[1] == walk_steps
        same(make(), wanted)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_values_kept_in_other_types(dtype):
    data = grit.AddRRWP(3)(path(edge_weight=torch.tensor([1.0, 1, 3, 1, 7, 1])))
    for name in ("rrwp", "rrwp_val", "log_deg"):
        data[name] = data[name].to(dtype)
    batch = grit.PairBatch.from_data_list([data], 3)
    assert batch.pair_encoding.dtype == torch.float32
