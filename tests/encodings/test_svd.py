import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

import grit
from grit.encodings.svd import svd_encoding, svd_loops_encoding
from grit.graphs.convert import pack
from tests.graph_strategies import graphs, permuted


def encode(data_list, rank, dtype=torch.float64):
    """U √Σ (N, K) and V √Σ (N, K) of a batch."""
    packed = pack(data_list)
    encoding = svd_encoding(packed, grit.choose_pairs(packed), rank, dtype)
    return encoding.node[:, :rank], encoding.node[:, rank:]


def adjacency(data):
    matrix = torch.zeros(data.num_nodes, data.num_nodes, dtype=torch.float64)
    for i, j in data.edge_index.t().tolist():
        matrix[i, j] = 1.0
    return matrix


@given(graphs(), st.integers(0, 3))
def test_the_product_is_the_adjacency_matrix_once_the_rank_suffices(data, more):
    matrix = adjacency(data)
    rank = int(torch.linalg.matrix_rank(matrix))
    left, right = encode([data], max(rank, 1) + more)
    torch.testing.assert_close(left @ right.T, matrix, rtol=0, atol=1e-9)
    assert (left[:, rank:].abs() < 1e-6).all()
    assert (right[:, rank:].abs() < 1e-6).all()


@given(graphs(), st.integers(1, 6))
def test_a_smaller_rank_is_the_nearest_matrix_of_that_rank(data, rank):
    """Eckart and Young: the squared distance that is left is that of the singular values left out."""
    matrix = adjacency(data)
    left, right = encode([data], rank)
    rest = torch.linalg.svdvals(matrix)[rank:].square().sum()
    torch.testing.assert_close((matrix - left @ right.T).square().sum(), rest, rtol=0, atol=1e-9)
    # Both halves have columns of the same length, the root of the singular value.
    kept = min(rank, data.num_nodes)
    for half in (left, right):
        length = half.square().sum(0)[:kept]
        torch.testing.assert_close(length, torch.linalg.svdvals(matrix)[:kept], rtol=0, atol=1e-9)
        assert not half[:, data.num_nodes :].any()


@given(graphs(), st.randoms())
def test_renumbering_keeps_the_product(data, random):
    order = list(range(data.num_nodes))
    random.shuffle(order)
    permutation = torch.tensor(order)
    n = data.num_nodes
    left, right = encode([data], n)
    moved_left, moved_right = encode([permuted(data, permutation)], n)
    product, moved = left @ right.T, moved_left @ moved_right.T
    torch.testing.assert_close(moved[permutation][:, permutation], product, rtol=0, atol=1e-9)


@given(st.lists(graphs(), min_size=1, max_size=5))
def test_a_batch_of_any_sizes_is_its_graphs_one_by_one(data_list):
    left, right = encode(data_list, 4)
    alone = [encode([data], 4) for data in data_list]
    torch.testing.assert_close(left, torch.cat([half for half, _ in alone]), rtol=0, atol=1e-12)
    torch.testing.assert_close(right, torch.cat([half for _, half in alone]), rtol=0, atol=1e-12)


@given(graphs(), st.integers(1, 6))
def test_signs_are_settled(data, rank):
    left, _ = encode([data], rank)
    for column in left.T:
        if column.abs().max() > 1e-6:
            assert column[(column.abs() >= column.abs().max() - 1e-9).nonzero()[0]] > 0


def test_a_directed_edge_by_hand():
    """0 -> 1 alone: node 0 has the left vector, node 1 the right one; the rest, and nodes without edges, zeros."""
    left, right = encode([Data(edge_index=torch.tensor([[0, 0], [1, 1]]), num_nodes=3)], 4)
    assert left.tolist() == [[1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    assert right.tolist() == [[0, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]]


def test_float32_is_the_rounded_float64():
    data = Data(edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3)
    for single, double in zip(encode([data], 2, torch.float32), encode([data], 2), strict=True):
        assert single.dtype == torch.float32
        assert torch.equal(single, double.float())


@given(graphs())
def test_with_loops_the_product_has_ones_on_the_diagonal(data):
    packed, n = pack([data]), data.num_nodes
    encoding = svd_loops_encoding(packed, grit.choose_pairs(packed), n, torch.float64).node
    wanted = torch.maximum(adjacency(data), torch.eye(n, dtype=torch.float64))
    torch.testing.assert_close(encoding[:, :n] @ encoding[:, n:].T, wanted, rtol=0, atol=1e-9)
