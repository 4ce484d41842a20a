import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

import grit
from grit.graphs.convert import pack
from grit.nn.attention.transformer import TransformerAttention
from tests.graph_strategies import graphs
from tests.nn.attention.test_grit import attended_pairs


def oracle(attention, x, pair_list):
    """The equation at the top of the module, head by head and pair by pair."""
    heads, channels = attention.num_heads, attention.head_dim
    node_out, weights = torch.zeros_like(x), x.new_zeros(len(pair_list), heads)
    for h in range(heads):
        part = slice(h * channels, (h + 1) * channels)
        query = x @ attention.query.weight[part].t() + attention.query.bias[part]
        key = x @ attention.key.weight[part].t()
        value = x @ attention.value.weight[part].t()
        for i in range(len(x)):
            row = [(p, j) for p, (q, j) in enumerate(pair_list) if q == i]
            logits = torch.stack([query[i] @ key[j] / channels**0.5 for _, j in row])
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
    st.sampled_from([None, 0.5]),
    st.integers(0, 1000),
)
@torch.no_grad()
def test_packed_attention_is_the_equation(data_list, kind, width, clamp, seed):
    torch.manual_seed(seed)
    dim, heads = width
    attention = TransformerAttention(hidden_dim=dim, num_heads=heads, clamp=clamp).double()
    packed, pair_list = pack(data_list), attended_pairs(data_list, kind)
    x = torch.randn(packed.num_nodes, dim).double()
    pair = torch.full((len(pair_list), dim), torch.nan).double()  # not read
    out = attention(x, pair, grit.choose_pairs(packed, kind))
    node, weights = oracle(attention, x, pair_list)
    torch.testing.assert_close(out.node, node, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(out.weights, weights, rtol=1e-10, atol=1e-10)
    assert out.pair is None


def test_is_torchs_scaled_dot_product_attention():
    torch.manual_seed(0)
    attention = TransformerAttention(hidden_dim=12, num_heads=3).double()
    x = torch.randn(7, 12).double()
    pairs = grit.choose_pairs(pack([Data(edge_index=torch.zeros(2, 0, dtype=torch.int64), num_nodes=7)]))
    heads = [linear(x).view(7, 3, 4).transpose(0, 1) for linear in (attention.query, attention.key, attention.value)]
    wanted = torch.nn.functional.scaled_dot_product_attention(*heads).transpose(0, 1).reshape(7, 12)
    torch.testing.assert_close(attention(x, torch.zeros(49, 12).double(), pairs).node, wanted)


def test_width_must_be_divisible_by_heads():
    with pytest.raises(grit.GritError, match="hidden_dim 64 is not divisible by num_heads 7"):
        TransformerAttention(hidden_dim=64, num_heads=7)
