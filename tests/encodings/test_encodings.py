"""The contract that every entry of ENCODINGS keeps."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

import grit
from grit.encodings import ENCODINGS, encoding_kind
from grit.graphs.convert import pack
from tests.graph_strategies import graphs, permuted, weighted_graphs

pytestmark = pytest.mark.parametrize("name", sorted(ENCODINGS))
ANY_GRAPHS = st.lists(graphs(max_nodes=6), min_size=1, max_size=4)


@given(data_list=ANY_GRAPHS, walk_steps=st.integers(1, 6), dtype=st.sampled_from([torch.float32, torch.float64]))
def test_shapes_and_types(name, data_list, walk_steps, dtype):
    kind = ENCODINGS[name]
    packed = pack(data_list)
    for choice in ("all", "edges"):
        pairs = grit.choose_pairs(packed, choice)
        encoding = kind.compute(packed, pairs, walk_steps, dtype)
        assert encoding.node.shape == (packed.num_nodes, kind.node_dim(walk_steps))
        assert encoding.pair.shape == (pairs.num_pairs, kind.pair_dim(walk_steps))
        assert encoding.node.dtype == encoding.pair.dtype == dtype
        assert torch.isfinite(encoding.node).all()
        assert torch.isfinite(encoding.pair).all()


@given(data=graphs(max_nodes=6))
def test_permutation_equivariance(name, data):
    if not ENCODINGS[name].equivariant:  # what renumbering does keep of those is in their own tests
        return
    permutation = torch.arange(data.num_nodes).flip(0)
    packed, moved = pack([data]), pack([permuted(data, permutation)])
    pairs = grit.choose_pairs(packed)
    here = ENCODINGS[name].compute(packed, pairs, 4, torch.float64)
    there = ENCODINGS[name].compute(moved, pairs, 4, torch.float64)
    torch.testing.assert_close(there.node[permutation], here.node)
    at = pairs.find(query=permutation[pairs.query], key=permutation[pairs.key])
    torch.testing.assert_close(there.pair[at], here.pair)


@given(data_list=ANY_GRAPHS)
def test_sparse_pairs_are_a_selection_of_all_pairs(name, data_list):
    packed = pack(data_list)
    everything, some = grit.choose_pairs(packed), grit.choose_pairs(packed, "edges")
    full = ENCODINGS[name].compute(packed, everything, 4, torch.float64)
    part = ENCODINGS[name].compute(packed, some, 4, torch.float64)
    torch.testing.assert_close(part.pair, full.pair[everything.find(some.query, some.key)])
    torch.testing.assert_close(part.node, full.node)


@given(data=weighted_graphs(max_nodes=6))
def test_weights_are_for_walks_alone(name, data):
    if name in ("rrwp", "rwse"):  # what weights do to those is in the tests of RRWP
        return
    weighted, plain = pack([data]), pack([Data(edge_index=data.edge_index, num_nodes=data.num_nodes)])
    assert weighted.edge_weight is not None
    pairs = grit.choose_pairs(plain)
    with_weights = ENCODINGS[name].compute(weighted, pairs, 4, torch.float64)
    without = ENCODINGS[name].compute(plain, pairs, 4, torch.float64)
    assert torch.equal(with_weights.node, without.node)
    assert torch.equal(with_weights.pair, without.pair)


def test_unknown_names_are_refused(name):
    with pytest.raises(grit.GritError, match=f"unknown encoding '{name}x'; there are .*{name}"):
        encoding_kind(f"{name}x")
