import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

import grit
from grit.graphs.convert import pack
from grit.nn.attention.egt import EgtAttention
from tests.graph_strategies import graphs
from tests.nn.attention.test_grit import attended_pairs


def oracle(attention, x, pair, pair_list):
    """The equations at the top of the module, head by head and pair by pair."""
    heads, channels = attention.num_heads, attention.head_dim
    node_out, pair_out = torch.zeros_like(x), torch.zeros_like(pair)
    weights = pair.new_zeros(len(pair_list), heads)
    bias = pair @ attention.pair_bias.weight.t() + attention.pair_bias.bias
    gate = 1 / (1 + (-(pair @ attention.pair_gate.weight.t() + attention.pair_gate.bias)).exp())
    for h in range(heads):
        part = slice(h * channels, (h + 1) * channels)
        query, key, value = (
            x @ linear.weight[part].t() + linear.bias[part]
            for linear in (attention.query, attention.key, attention.value)
        )
        for i in range(len(x)):
            row = [(p, j) for p, (q, j) in enumerate(pair_list) if q == i]
            clip = attention.product_clip
            logits = [(query[i] @ key[j] / channels**0.5).clamp(-clip, clip) + bias[p, h] for p, j in row]
            if attention.clamp is not None:
                logits = [logit.clamp(-attention.clamp, attention.clamp) for logit in logits]
            for (p, j), logit, weight in zip(row, logits, torch.softmax(torch.stack(logits), 0), strict=True):
                weights[p, h] = weight
                pair_out[p, part] = logit
                node_out[i, part] += weight * gate[p, h] * value[j]
    return node_out, pair_out, weights


@given(
    st.lists(graphs(max_nodes=4), min_size=1, max_size=3),
    st.sampled_from(["all", "edges"]),
    st.sampled_from([(4, 1), (6, 2), (6, 3)]),
    st.sampled_from([None, 0.5]),
    st.sampled_from([5.0, 0.2]),
    st.integers(0, 1000),
)
@torch.no_grad()
def test_packed_attention_is_the_equation(data_list, kind, width, clamp, clip, seed):
    torch.manual_seed(seed)
    dim, heads = width
    attention = EgtAttention(hidden_dim=dim, num_heads=heads, clamp=clamp, product_clip=clip).double()
    packed, pair_list = pack(data_list), attended_pairs(data_list, kind)
    x = torch.randn(packed.num_nodes, dim).double()
    pair = torch.randn(len(pair_list), dim).double()
    out = attention(x, pair, grit.choose_pairs(packed, kind))
    for got, wanted in zip(out, oracle(attention, x, pair, pair_list), strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-10, atol=1e-10)


def test_a_shut_gate_lets_nothing_through_and_leaves_the_weights():
    torch.manual_seed(0)
    pairs = grit.choose_pairs(pack([Data(edge_index=torch.zeros(2, 0, dtype=torch.int64), num_nodes=4)]))
    attention = EgtAttention(hidden_dim=8, num_heads=2)
    x, pair = torch.randn(4, 8), torch.randn(16, 8)
    before = attention(x, pair, pairs)
    attention.pair_gate.bias.data.fill_(-200.0)
    after = attention(x, pair, pairs)
    assert before.node.abs().max() > 0.01
    assert after.node.abs().max() < 1e-12
    assert torch.equal(before.weights, after.weights)


def test_products_are_clipped_to_five_by_default_and_the_pairs_share_is_not():
    torch.manual_seed(0)
    pairs = grit.choose_pairs(pack([Data(edge_index=torch.zeros(2, 0, dtype=torch.int64), num_nodes=5)]))
    attention = EgtAttention(hidden_dim=8, num_heads=1).double()
    x, pair = 1e3 * torch.randn(5, 8).double(), torch.zeros(25, 8).double()
    weights = attention(x, pair, pairs).weights.view(5, 5)
    torch.testing.assert_close((weights.amax(1) / weights.amin(1)).max(), torch.tensor(10.0).double().exp())
    assert attention(x, 1e3 * torch.randn(25, 8).double(), pairs).weights.max() > 1 - 1e-9


def test_width_must_be_divisible_by_heads():
    with pytest.raises(grit.GritError, match="hidden_dim 64 is not divisible by num_heads 7"):
        EgtAttention(hidden_dim=64, num_heads=7)
