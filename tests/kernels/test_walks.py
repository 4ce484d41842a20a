import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

import grit
from grit import kernels
from grit.encodings.rrwp import rrwp_encoding
from grit.graphs.convert import pack
from tests.graph_strategies import graphs

pytestmark = pytest.mark.skipif(kernels.status().active != "fused", reason=kernels.status().reason)


def both_forms(data_list, walk_steps, dtype):
    packed = pack(data_list)
    pairs = grit.choose_pairs(packed)
    encodings = []
    for form in ("plain", "fused"):
        with kernels.use(form):
            encodings.append(rrwp_encoding(packed, pairs, walk_steps, dtype))
    return encodings


@given(st.lists(graphs(max_nodes=40), min_size=1, max_size=4), st.integers(1, 40))
def test_fused_is_plain(data_list, walk_steps):
    for dtype, error in ((torch.float64, 1e-12), (torch.float32, 1e-5)):
        plain, fused = both_forms(data_list, walk_steps, dtype)
        torch.testing.assert_close(fused.pair, plain.pair, rtol=error, atol=error / 100)
        torch.testing.assert_close(fused.node, plain.node, rtol=error, atol=error / 100)


@pytest.mark.parametrize("walk_steps", [1, 2, 7, 8, 9, 15, 16, 17, 32, 33])
def test_steps_around_the_length_of_a_vector(walk_steps):
    torch.manual_seed(0)
    data_list = [Data(edge_index=torch.randint(n, (2, 2 * n)), num_nodes=n) for n in (1, 15, 16, 17, 20, 33)]
    for dtype, error in ((torch.float64, 1e-12), (torch.float32, 1e-5)):
        plain, fused = both_forms(data_list, walk_steps, dtype)
        torch.testing.assert_close(fused.pair, plain.pair, rtol=error, atol=error / 100)
        torch.testing.assert_close(fused.node, plain.node, rtol=error, atol=error / 100)


@pytest.mark.parametrize("n", [300, 900])
def test_graphs_of_many_blocks_of_columns(n):
    """Of two vectors where they fit into the cache, of one where they do not."""
    torch.manual_seed(0)
    data = Data(edge_index=torch.randint(n, (2, 3 * n)), num_nodes=n)
    plain, fused = both_forms([data], 21, torch.float64)
    torch.testing.assert_close(fused.pair, plain.pair, rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(fused.node, plain.node, rtol=1e-12, atol=1e-14)


def test_threads_do_not_matter():
    torch.manual_seed(0)
    data_list = [Data(edge_index=torch.randint(n, (2, 4 * n)), num_nodes=n) for n in (100, 3, 57)]
    results = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            results.append(both_forms(data_list, 9, torch.float32)[1].pair)
    finally:
        torch.set_num_threads(1)
    assert torch.equal(results[0], results[1])
    assert torch.equal(results[0], results[2])
