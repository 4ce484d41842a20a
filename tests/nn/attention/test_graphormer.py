import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

import grit
from grit.graphs.convert import pack
from grit.nn.attention.graphormer import GraphormerAttention
from tests.graph_strategies import graphs
from tests.nn.attention.test_grit import attended_pairs


def oracle(attention, x, pair, pair_list):
    """The equation at the top of the module, head by head and pair by pair."""
    heads, channels = attention.num_heads, attention.head_dim
    node_out, weights = torch.zeros_like(x), pair.new_zeros(len(pair_list), heads)
    bias = pair @ attention.pair_bias.weight.t() + attention.pair_bias.bias
    for h in range(heads):
        part = slice(h * channels, (h + 1) * channels)
        query = x @ attention.query.weight[part].t() + attention.query.bias[part]
        key = x @ attention.key.weight[part].t()
        value = x @ attention.value.weight[part].t()
        for i in range(len(x)):
            row = [(p, j) for p, (q, j) in enumerate(pair_list) if q == i]
            logits = torch.stack([query[i] @ key[j] / channels**0.5 + bias[p, h] for p, j in row])
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
    attention = GraphormerAttention(hidden_dim=dim, num_heads=heads, clamp=clamp).double()
    packed, pair_list = pack(data_list), attended_pairs(data_list, kind)
    x = torch.randn(packed.num_nodes, dim).double()
    pair = torch.randn(len(pair_list), dim).double()
    out = attention(x, pair, grit.choose_pairs(packed, kind))
    node, weights = oracle(attention, x, pair, pair_list)
    torch.testing.assert_close(out.node, node, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(out.weights, weights, rtol=1e-10, atol=1e-10)
    assert out.pair is None


def test_dropout_scales_the_weights_that_are_left():
    torch.manual_seed(0)
    n = 40
    attention = GraphormerAttention(hidden_dim=n, num_heads=1, attention_dropout=0.3)
    attention.value.weight.data.copy_(torch.eye(n))
    pairs = grit.choose_pairs(pack([Data(edge_index=torch.zeros(2, 0, dtype=torch.int64), num_nodes=n)]))
    out = attention(torch.eye(n), torch.randn(n * n, n), pairs)  # value j is unit vector j: x̂ shows the weights
    ratio = out.node / out.weights.view(n, n)
    kept = ratio > 0
    torch.testing.assert_close(ratio, kept / 0.7)
    assert abs(kept.float().mean() - 0.7) <= 4 * (0.3 * 0.7 / n**2) ** 0.5


def test_initialisation():
    torch.manual_seed(0)
    dim, heads = 256, 16
    attention = GraphormerAttention(hidden_dim=dim, num_heads=heads)
    for name, std in {
        "query.weight": (1 / dim) ** 0.5,
        "key.weight": (1 / dim) ** 0.5,
        "value.weight": (1 / dim) ** 0.5,
        "pair_bias.weight": (2 / (dim + heads)) ** 0.5,
    }.items():
        weight = attention.get_parameter(name)
        assert abs(weight.std().item() / std - 1) < 4 / weight.numel() ** 0.5, name
        assert weight.abs().max() > 2 * std, name  # normal, not uniform


def test_width_must_be_divisible_by_heads():
    with pytest.raises(grit.GritError, match="hidden_dim 64 is not divisible by num_heads 7"):
        GraphormerAttention(hidden_dim=64, num_heads=7)
