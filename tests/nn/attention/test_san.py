import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

import grit
from grit.graphs.convert import pack
from grit.nn.attention.san import SanAttention
from tests.graph_strategies import graphs
from tests.nn.attention.test_grit import attended_pairs


def oracle(attention, x, pair, pair_list):
    """The equation at the top of the module, head by head and pair by pair."""
    heads, channels = attention.num_heads, attention.head_dim
    node_out, weights = torch.zeros_like(x), pair.new_zeros(len(pair_list), heads)
    for h in range(heads):
        part = slice(h * channels, (h + 1) * channels)
        query, key, value = (
            x @ linear.weight[part].t() for linear in (attention.query, attention.key, attention.value)
        )
        scale = pair @ attention.pair_scale.weight[part].t()
        for i in range(len(x)):
            row = [(p, j) for p, (q, j) in enumerate(pair_list) if q == i]
            logits = torch.stack([(query[i] * key[j] * scale[p]).sum() / channels**0.5 for p, j in row])
            if attention.clamp is not None:
                logits = logits.clamp(-attention.clamp, attention.clamp)
            for (p, j), weight in zip(row, torch.softmax(logits, 0), strict=True):
                weights[p, h] = weight
                node_out[i, part] += weight * value[j]
    return node_out, weights


@given(
    st.lists(graphs(max_nodes=4), min_size=1, max_size=3),
    st.sampled_from(["all", "edges"]),
    st.sampled_from([(4, 1), (6, 2), (6, 3)]),
    st.sampled_from([None, 0.05, 5.0]),
    st.integers(0, 1000),
)
@torch.no_grad()
def test_packed_attention_is_the_equation(data_list, kind, width, clamp, seed):
    torch.manual_seed(seed)
    dim, heads = width
    attention = SanAttention(hidden_dim=dim, num_heads=heads, clamp=clamp).double()
    packed, pair_list = pack(data_list), attended_pairs(data_list, kind)
    x = 3 * torch.randn(packed.num_nodes, dim).double()
    pair = 3 * torch.randn(len(pair_list), dim).double()
    out = attention(x, pair, grit.choose_pairs(packed, kind))
    node, weights = oracle(attention, x, pair, pair_list)
    torch.testing.assert_close(out.node, node, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(out.weights, weights, rtol=1e-10, atol=1e-10)
    assert out.pair is None


def test_logits_are_clamped_to_five_by_default():
    torch.manual_seed(0)
    pairs = grit.choose_pairs(pack([Data(edge_index=torch.zeros(2, 0, dtype=torch.int64), num_nodes=5)]))
    x, pair = 1e3 * torch.randn(5, 8).double(), torch.randn(25, 8).double()
    weights = SanAttention(hidden_dim=8, num_heads=1).double()(x, pair, pairs).weights.view(5, 5)
    ratio = weights.amax(1) / weights.amin(1)
    torch.testing.assert_close(ratio.max(), torch.tensor(10.0).double().exp())


def test_width_must_be_divisible_by_heads():
    with pytest.raises(grit.GritError, match="hidden_dim 64 is not divisible by num_heads 7"):
        SanAttention(hidden_dim=64, num_heads=7)
