import networkx as nx
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data
from torch_geometric.transforms import AddRandomWalkPE

import grit
from grit import kernels
from grit.encodings import rrwp as rrwp_module
from grit.encodings.rrwp import rrwp_encoding
from grit.graphs.convert import pack
from tests.golden import Case
from tests.graph_strategies import graphs, permuted, weighted_graphs

pytestmark = pytest.mark.usefixtures("each_form")

CASES = ["rrwp_k21_mixed", "rrwp_k8_selfloop_multi", "rrwp_k2"]


@pytest.mark.parametrize("name", CASES)
def test_the_released_values(name):
    case = Case(name)
    data_list = case.data_list(with_rrwp=False)
    batch = Batch.from_data_list([grit.AddRRWP(case.meta["K"])(data) for data in data_list])
    torch.testing.assert_close(batch.rrwp, case["rrwp.abs"], rtol=1e-6, atol=1e-7)
    assert torch.equal(batch.rrwp_index, case["rrwp.index"])
    torch.testing.assert_close(batch.rrwp_val, case["rrwp.val"], rtol=1e-6, atol=1e-7)
    assert torch.equal(batch.deg, case["rrwp.deg"])
    torch.testing.assert_close(batch.log_deg, case["rrwp.log_deg"], rtol=1e-6, atol=0)


def test_six_nodes_by_hand():
    # 0 - 1 - 2 a path, 3 -> 4 one way, 5 alone.
    edges = torch.tensor([[0, 1, 1, 2, 3], [1, 0, 2, 1, 4]])
    values = grit.rrwp(edges, 6, 4)
    assert values.shape == (6, 6, 4)
    assert values[0, :3].tolist() == [[1, 0, 0.5, 0], [0, 1, 0, 1], [0, 0, 0.5, 0]]
    assert values[1, :3].tolist() == [[0, 0.5, 0, 0.5], [1, 0, 1, 0], [0, 0.5, 0, 0.5]]
    assert values[3, 3:].tolist() == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]]
    assert values[4, 4].tolist() == [1, 0, 0, 0]
    assert values[5, 5].tolist() == [1, 0, 0, 0]
    assert values[:3, 3:].abs().sum() == 0


def test_parallel_edges_count_in_the_degree_only():
    values = grit.rrwp(torch.tensor([[0, 0, 0], [1, 1, 2]]), 3, 2)
    torch.testing.assert_close(values[0, :, 1], torch.tensor([0, 1 / 3, 1 / 3]))


@given(graphs(), st.integers(1, 6))
def test_is_the_dense_power(data, walk_steps):
    n = data.num_nodes
    adjacency = torch.zeros(n, n, dtype=torch.float64)
    adjacency[data.edge_index[0], data.edge_index[1]] = 1.0
    degree = torch.bincount(data.edge_index[0], minlength=n).double()
    step = torch.where(degree > 0, 1 / degree, 0.0)[:, None] * adjacency
    values = grit.rrwp(data.edge_index, n, walk_steps, dtype=torch.float64)
    assert torch.equal(values[:, :, 0], torch.eye(n, dtype=torch.float64))
    for k in range(walk_steps):
        torch.testing.assert_close(values[:, :, k], torch.linalg.matrix_power(step, k))
    single = grit.rrwp(data.edge_index, n, walk_steps)
    assert single.dtype == torch.float32
    torch.testing.assert_close(single, values.float())


def weighted_powers(data, walk_steps):
    """I, M, M^2, ... of one graph, (n, n, K), edge by edge in the order listed."""
    n = data.num_nodes
    degree, step = torch.zeros(n, dtype=torch.float64), torch.zeros(n, n, dtype=torch.float64)
    for (u, v), weight in zip(data.edge_index.t().tolist(), data.edge_weight.flatten().tolist(), strict=True):
        degree[u] += weight
        step[u, v] = weight  # assigned, not added: the last of parallel edges stays
    step = torch.where(degree[:, None] > 0, step / degree[:, None], 0.0)
    return torch.stack([torch.linalg.matrix_power(step, k) for k in range(walk_steps)], -1), degree


@given(weighted_graphs(), st.integers(1, 6))
def test_weights_make_steps_more_or_less_likely(data, walk_steps):
    wanted, degree = weighted_powers(data, walk_steps)
    values = grit.rrwp(data.edge_index, data.num_nodes, walk_steps, data.edge_weight, dtype=torch.float64)
    torch.testing.assert_close(values, wanted, rtol=1e-12, atol=1e-14)
    encoded = grit.AddRRWP(walk_steps)(data)
    torch.testing.assert_close(encoded.rrwp, wanted.diagonal().t().float())
    torch.testing.assert_close(encoded.log_deg, torch.log1p(degree).float())
    assert torch.equal(encoded.deg, degree.float().long())


@given(
    st.lists(weighted_graphs(max_nodes=20), min_size=1, max_size=4),
    st.sampled_from(["all", "edges", "khop-2"]),
    st.sampled_from(["rrwp", "rwse"]),
)
def test_weights_in_a_batch(data_list, kind, encoding):
    options = {"walk_steps": 5, "pairs": kind, "encoding": encoding, "dtype": torch.float64}
    batch = grit.PairBatch.from_data_list(data_list, **options)
    graph = batch.graphs.graph_of_node
    for g, data in enumerate(data_list):
        wanted, degree = weighted_powers(data, 5)
        first = int(batch.graphs.node_ptr[g])
        mine = graph[batch.pairs.query] == g
        i, j = batch.pairs.query[mine] - first, batch.pairs.key[mine] - first
        torch.testing.assert_close(batch.node_encoding[graph == g], wanted.diagonal().t(), rtol=1e-12, atol=1e-14)
        if encoding == "rrwp":
            torch.testing.assert_close(batch.pair_encoding[mine], wanted[i, j], rtol=1e-12, atol=1e-14)
        torch.testing.assert_close(batch.log_degree[graph == g], torch.log1p(degree))
        assert torch.equal(batch.degree[graph == g], torch.bincount(data.edge_index[0], minlength=data.num_nodes))
    from_pyg = grit.PairBatch.from_pyg(Batch.from_data_list(data_list), **options)
    assert torch.equal(from_pyg.pair_encoding, batch.pair_encoding)
    assert torch.equal(from_pyg.node_encoding, batch.node_encoding)
    assert torch.equal(from_pyg.log_degree, batch.log_degree)


@given(graphs(), st.integers(1, 6), st.floats(0.1, 10), st.sampled_from([torch.float32, torch.int32]))
def test_equal_weights_are_no_weights(data, walk_steps, weight, dtype):
    weights = torch.full((data.num_edges, 1), weight).add(1).to(dtype)
    weighted = grit.rrwp(data.edge_index, data.num_nodes, walk_steps, weights)
    torch.testing.assert_close(weighted, grit.rrwp(data.edge_index, data.num_nodes, walk_steps))


def test_weights_by_hand():
    edges = torch.tensor([[0, 0, 0, 1, 2], [1, 2, 1, 0, 0]])
    step = grit.rrwp(edges, 3, 2, torch.tensor([1.0, 4.0, 3.0, 2.0, 0.0]))[:, :, 1]
    # Node 0: 1 + 4 + 3 in all; of the two edges to node 1 the last one counts. Node 2: no weight, no step.
    torch.testing.assert_close(step, torch.tensor([[0, 3 / 8, 4 / 8], [1, 0, 0], [0, 0, 0]]))


@given(graphs(simple=True), st.integers(2, 6))
def test_rows_sum_to_one_or_to_zero_after_a_sink(data, walk_steps):
    values = grit.rrwp(data.edge_index, data.num_nodes, walk_steps, dtype=torch.float64)
    has_exit = torch.bincount(data.edge_index[0], minlength=data.num_nodes) > 0
    torch.testing.assert_close(values[:, :, 1].sum(1), has_exit.double())
    totals = values.sum(1)  # (n, K): the probability that the walk is still going
    assert (totals <= 1 + 1e-12).all()
    assert (totals.diff(dim=1) <= 1e-12).all()
    if has_exit.all():
        torch.testing.assert_close(totals, torch.ones_like(totals))


@given(graphs())
def test_first_channel_that_is_not_zero_is_the_shortest_path(data):
    n = data.num_nodes
    values = grit.rrwp(data.edge_index, n, n, dtype=torch.float64)
    graph = nx.DiGraph()
    graph.add_nodes_from(range(n))
    graph.add_edges_from(data.edge_index.t().tolist())
    distances = dict(nx.all_pairs_shortest_path_length(graph))
    for i in range(n):
        for j in range(n):
            channels = values[i, j].nonzero()[:, 0].tolist()
            assert distances[i].get(j) == (channels[0] if channels else None)


@given(graphs(simple=True, undirected=True), st.integers(2, 6))
def test_diagonal_is_pygs_random_walk_encoding(data, walk_steps):
    theirs = AddRandomWalkPE(walk_steps - 1, attr_name="pe")(data.clone()).pe
    diagonal = grit.rrwp(data.edge_index, data.num_nodes, walk_steps).diagonal().t()
    torch.testing.assert_close(diagonal[:, 1:], theirs)


@given(graphs(), st.randoms())
def test_permutation_equivariance(data, random):
    order = list(range(data.num_nodes))
    random.shuffle(order)
    permutation = torch.tensor(order)
    values = grit.rrwp(data.edge_index, data.num_nodes, 5, dtype=torch.float64)
    moved = grit.rrwp(permuted(data, permutation).edge_index, data.num_nodes, 5, dtype=torch.float64)
    torch.testing.assert_close(moved[permutation][:, permutation], values)


@given(st.lists(graphs(max_nodes=40), min_size=1, max_size=6), st.sampled_from(["all", "edges", "khop-2"]))
def test_a_batch_of_any_sizes_is_its_graphs_one_by_one(data_list, kind):
    packed = pack(data_list)
    pairs = grit.choose_pairs(packed, kind)
    batch = rrwp_encoding(packed, pairs, 5, torch.float64)
    for g, data in enumerate(data_list):
        first = int(packed.node_ptr[g])
        single = grit.rrwp(data.edge_index, data.num_nodes, 5, dtype=torch.float64)
        mine = packed.graph_of_node[pairs.query] == g
        torch.testing.assert_close(batch.pair[mine], single[pairs.query[mine] - first, pairs.key[mine] - first])
        torch.testing.assert_close(batch.node[first : first + data.num_nodes], single.diagonal().t())


@given(
    st.lists(graphs(max_nodes=40), min_size=1, max_size=4),
    st.sampled_from(["all", "edges", "khop-2"]),
    st.integers(1, 6),
    st.integers(1, 7),
)
def test_a_few_columns_at_a_time_give_the_same(data_list, kind, walk_steps, width):
    packed = pack(data_list)
    pairs = grit.choose_pairs(packed, kind)
    whole = rrwp_encoding(packed, pairs, walk_steps, torch.float64)
    with pytest.MonkeyPatch.context() as patch, kernels.use("plain"):
        patch.setattr(rrwp_module, "LANES", width)
        patch.setattr(rrwp_module, "BLOCK_BYTES", 1)
        blocks = rrwp_encoding(packed, pairs, walk_steps, torch.float64)
    torch.testing.assert_close(blocks.node, whole.node, rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(blocks.pair, whole.pair, rtol=1e-12, atol=1e-14)


def test_transform_copies_and_is_read_back():
    data = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=3)
    encoded = grit.AddRRWP(4)(data)
    assert "rrwp" not in data
    walk = encoded.rrwp_index[0] != encoded.rrwp_index[1]
    encoded.rrwp_val[walk, 2:] += 1.0  # so that reading back shows; the first channels are compared with the edges
    plain = grit.PairBatch.from_data_list([data, data], walk_steps=4)
    stored = grit.PairBatch.from_data_list([encoded, encoded], walk_steps=4)
    touched = (plain.pairs.query != plain.pairs.key) & (plain.pair_encoding.abs().sum(1) > 0)
    assert touched.sum() == 4
    torch.testing.assert_close(stored.pair_encoding[touched, 2:], plain.pair_encoding[touched, 2:] + 1)
    torch.testing.assert_close(stored.pair_encoding[~touched], plain.pair_encoding[~touched])
    other_length = grit.PairBatch.from_data_list([encoded, encoded], walk_steps=5)
    assert other_length.pair_encoding.shape[1] == 5
    from_pyg = grit.PairBatch.from_pyg(Batch.from_data_list([encoded, encoded]), walk_steps=4)
    torch.testing.assert_close(from_pyg.pair_encoding, stored.pair_encoding)
    assert repr(grit.AddRRWP(4)) == "AddRRWP(walk_steps=4)"


@pytest.mark.parametrize(
    ("edge_index", "num_nodes", "walk_steps", "message"),
    [
        (torch.tensor([[0], [3]]), 3, 4, "edge 0 -> 3, but the graph has 3 nodes: node numbers go from 0 to 2"),
        (torch.tensor([[-1], [0]]), 3, 4, "edge -1 -> 0"),
        (torch.tensor([[0.0], [1.0]]), 3, 4, r"edge_index must hold integers, got torch.float32"),
        (torch.tensor([0, 1]), 3, 4, r"shape \(2, E\), got \(2,\)"),
        (torch.tensor([[0], [1]]), 3, 0, "walk_steps must be at least 1, got 0"),
        (torch.tensor([[0], [1]]), 3, 4.0, "walk_steps must be a whole number, got 4.0"),
        (torch.tensor([[0], [1]]), 3, "4", "walk_steps must be a whole number, got '4'"),
        (torch.tensor([[0], [1]]), 3, True, "walk_steps must be a whole number, got True"),
        (torch.tensor([[0], [1]]), 0, 4, "num_nodes must be at least 1"),
    ],
)
def test_bad_input(edge_index, num_nodes, walk_steps, message):
    with pytest.raises(grit.GritError, match=message):
        grit.rrwp(edge_index, num_nodes, walk_steps)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (
            torch.ones(3),
            r"graph 0: edge_weight has shape \(3,\), expected a tensor of shape \(2,\): one weight for each",
        ),
        (torch.ones(2, 2), r"edge_weight has shape \(2, 2\)"),
        ([1.0, 1.0], "edge_weight has type list"),
        (torch.ones(2).bool(), "edge_weight has type torch.bool; weights are numbers"),
        (torch.tensor([1.0, -0.5]), "graph 0: edge_weight of edge 1 is -0.5; weights .* finite and not negative"),
        (torch.tensor([float("nan"), 1.0]), "edge_weight of edge 0 is nan"),
        (torch.tensor([float("inf"), 1.0]), "edge_weight of edge 0 is inf"),
    ],
)
def test_bad_weights(weights, message):
    edges = torch.tensor([[0, 1], [1, 0]])
    with pytest.raises(grit.GritError, match=message):
        grit.rrwp(edges, 2, 3, weights)
    with pytest.raises(grit.GritError, match=message):
        grit.AddRRWP(3)(Data(edge_index=edges, edge_weight=weights, num_nodes=2))
    with pytest.raises(grit.GritError, match=message):
        grit.PairBatch.from_data_list([Data(edge_index=edges, edge_weight=weights, num_nodes=2)])


def test_weights_on_some_graphs_only():
    plain = Data(edge_index=torch.tensor([[0], [1]]), num_nodes=2)
    weighted = Data(edge_index=torch.tensor([[0], [1]]), edge_weight=torch.ones(1), num_nodes=2)
    with pytest.raises(grit.GritError, match="graph 0 has no edge_weight but graph 1 has"):
        grit.PairBatch.from_data_list([plain, weighted])


@pytest.mark.parametrize(("walk_steps", "message"), [(0, "at least 1"), (4.0, "a whole number"), (True, "a whole")])
def test_transform_refuses_other_than_a_number_of_steps(walk_steps, message):
    with pytest.raises(grit.GritError, match=f"walk_steps must be {message}"):
        grit.AddRRWP(walk_steps)
