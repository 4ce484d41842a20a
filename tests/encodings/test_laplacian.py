import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

import grit
from grit.encodings.laplacian import laplacian_encoding, unnormalised_laplacian_encoding
from grit.graphs.convert import pack
from tests.graph_strategies import graphs, permuted


def encode(data_list, frequencies, dtype=torch.float64, compute=laplacian_encoding):
    """Eigenvectors (N, K) and eigenvalues (N, K) of a batch."""
    packed = pack(data_list)
    encoding = compute(packed, grit.choose_pairs(packed), frequencies, dtype)
    return encoding.node[:, :frequencies], encoding.node[:, frequencies:]


def laplacian(data):
    """L from NetworkX, edges taken in both directions and once; a node without edges has a zero row."""
    graph = nx.Graph()
    graph.add_nodes_from(range(data.num_nodes))
    graph.add_edges_from(data.edge_index.t().tolist())
    adjacency = nx.to_numpy_array(graph)  # a self-loop counts once
    degree = adjacency.sum(1)
    scale = np.array([d**-0.5 if d else 0.0 for d in degree])
    return torch.from_numpy(scale[:, None] * (np.diag(degree) - adjacency) * scale[None, :])


@given(graphs(), st.integers(1, 10))
def test_eigen_equation_orthonormal_ascending_and_padded(data, frequencies):
    vectors, values = encode([data], frequencies)
    n, kept = data.num_nodes, min(data.num_nodes, frequencies)
    assert (values == values[:1]).all()  # of the graph, the same at every node
    torch.testing.assert_close(laplacian(data) @ vectors, vectors * values, rtol=0, atol=1e-9)
    torch.testing.assert_close(vectors[:, :kept].T @ vectors[:, :kept], torch.eye(kept).double(), rtol=0, atol=1e-9)
    assert (values[0, :kept].diff() >= -1e-12).all()
    assert values[0, 0].abs() < 1e-9  # the trivial one is there
    assert values.min() > -1e-9
    assert values.max() < 2 + 1e-9
    assert not vectors[:, n:].any()
    assert not values[:, n:].any()


@given(graphs(), st.randoms())
def test_renumbering_keeps_eigenvalues_and_eigenspaces(data, random):
    order = list(range(data.num_nodes))
    random.shuffle(order)
    permutation = torch.tensor(order)
    n = data.num_nodes
    here, values = encode([data], n)
    there, moved_values = encode([permuted(data, permutation)], n)
    torch.testing.assert_close(moved_values, values, rtol=0, atol=1e-9)
    for value in values[0]:
        same = (values[0] - value).abs() < 1e-6
        projection, moved = here[:, same] @ here[:, same].T, there[:, same] @ there[:, same].T
        torch.testing.assert_close(moved[permutation][:, permutation], projection, rtol=0, atol=1e-7)


@given(st.lists(graphs(), min_size=1, max_size=5))
def test_a_batch_of_any_sizes_is_its_graphs_one_by_one(data_list):
    vectors, values = encode(data_list, 4)
    alone = [encode([data], 4) for data in data_list]
    torch.testing.assert_close(vectors, torch.cat([v for v, _ in alone]), rtol=0, atol=1e-12)
    torch.testing.assert_close(values, torch.cat([v for _, v in alone]), rtol=0, atol=1e-12)


@given(graphs(), st.integers(1, 6))
def test_signs_are_settled(data, frequencies):
    vectors, _ = encode([data], frequencies)
    for column in vectors[:, : data.num_nodes].T:
        largest = (column.abs() >= column.abs().max() - 1e-9).nonzero()[0]
        assert column[largest] > 0


def test_path_of_three_by_hand():
    data = Data(edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3)
    vectors, values = encode([data], 4)
    half, root = 0.5, 0.5**0.5
    # Of u_2 the first of two equal entries is positive, of u_3 the middle one, which is the largest.
    wanted = torch.tensor([[half, root, -half, 0], [root, 0, root, 0], [half, -root, -half, 0]], dtype=torch.float64)
    torch.testing.assert_close(vectors, wanted, rtol=0, atol=1e-12)
    torch.testing.assert_close(values[0], torch.tensor([0, 1, 2, 0]).double(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("edges", [[], [(1, 2), (2, 1)]])
def test_nodes_without_edges_are_components_of_their_own(edges):
    data = Data(edge_index=torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).t(), num_nodes=4)
    vectors, values = encode([data], 4)
    components = 4 - len(edges) // 2
    assert (values[0].abs() < 1e-12).sum() == components
    null = vectors[:, :components]
    torch.testing.assert_close((null @ null.T)[0], torch.tensor([1, 0, 0, 0]).double(), rtol=0, atol=1e-12)


def test_path_of_three_unnormalised_by_hand():
    data = Data(edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3)
    vectors, values = encode([data], 4, compute=unnormalised_laplacian_encoding)
    third, half, sixth = 3**-0.5, 2**-0.5, 6**-0.5
    wanted = torch.tensor([[third, half, -sixth, 0], [third, 0, 2 * sixth, 0], [third, -half, -sixth, 0]])
    torch.testing.assert_close(vectors, wanted.double(), rtol=0, atol=1e-7)
    torch.testing.assert_close(values[0], torch.tensor([0, 1, 3, 0]).double(), rtol=0, atol=1e-12)


@given(graphs(), st.integers(1, 10))
def test_unnormalised_eigen_equation(data, frequencies):
    vectors, values = encode([data], frequencies, compute=unnormalised_laplacian_encoding)
    graph = nx.Graph()
    graph.add_nodes_from(range(data.num_nodes))
    graph.add_edges_from(edge for edge in data.edge_index.t().tolist() if edge[0] != edge[1])
    matrix = torch.from_numpy(nx.laplacian_matrix(graph).toarray()).double()
    torch.testing.assert_close(matrix @ vectors, vectors * values, rtol=0, atol=1e-9)
    kept = min(data.num_nodes, frequencies)
    torch.testing.assert_close(vectors[:, :kept].T @ vectors[:, :kept], torch.eye(kept).double(), rtol=0, atol=1e-9)
