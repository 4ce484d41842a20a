import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import grit
from grit.graphs.convert import pack
from grit.nn.attention.grit import GritAttention, grit_attention
from tests.golden import Case, assert_close
from tests.graph_strategies import graphs

CASES = ["attn_d64h8", "attn_d24h3_clamped"]


def released_attention(case, prefix="sd."):
    """Our attention with the weights of an attention or layer case."""
    dim, heads = case.meta["D"], case.meta["H"]
    channels = dim // heads
    weights = case.under(prefix)
    attention = GritAttention(hidden_dim=dim, num_heads=heads, clamp=case.meta["clamp"])
    scale, shift = headwise_parts(weights["E.weight"], heads)
    scale_bias, shift_bias = headwise_parts(weights["E.bias"], heads)
    attention.load_state_dict(
        {
            "query.weight": weights["Q.weight"],
            "query.bias": weights["Q.bias"],
            "key.weight": weights["K.weight"],
            "value.weight": weights["V.weight"],
            "pair_scale.weight": scale,
            "pair_scale.bias": scale_bias,
            "pair_shift.weight": shift,
            "pair_shift.bias": shift_bias,
            "score": weights["Aw"][:, :, 0].t(),
            "pair_value": weights["VeRow"].transpose(0, 1),
        }
    )
    assert attention.head_dim == channels
    return attention.double()


def headwise_parts(both, heads):
    """(2D, ...) -> (D, ...), (D, ...): per head, first the scale rows, then the shift rows."""
    rows = torch.arange(both.shape[0]).view(heads, 2, -1)
    return both[rows[:, 0].flatten()], both[rows[:, 1].flatten()]


@pytest.mark.parametrize("name", CASES)
def test_outputs_and_gradients_of_the_released_attention(name):
    case = Case(name)
    attention = released_attention(case)
    pairs, order = case.pairs()
    x = case["in.x"].double().requires_grad_()
    pair = case["in.edge_attr"].double()[order].requires_grad_()
    out = attention(x, pair, pairs)
    heads = case.meta["H"]
    assert_close(out.node.view(len(x), heads, -1), case["out64.h"], 1e-9)
    assert_close(out.pair, case["out64.e"][order], 1e-9)
    assert_close(out.weights.unsqueeze(-1), case["out64.attn"][order], 1e-9)
    loss = (out.node.view(len(x), heads, -1) * case["loss.w_h"]).sum() + (out.pair * case["loss.w_e"][order]).sum()
    assert_close(loss, case["out64.loss"], 1e-9)
    loss.backward()
    assert_close(x.grad, case["grad64.x"], 1e-6)
    assert_close(pair.grad, case["grad64.edge_attr"][order], 1e-6)
    theirs = case.under("grad64.")
    scale, shift = headwise_parts(theirs["E.weight"], heads)
    scale_bias, shift_bias = headwise_parts(theirs["E.bias"], heads)
    for ours, wanted in {
        "query.weight": theirs["Q.weight"],
        "query.bias": theirs["Q.bias"],
        "key.weight": theirs["K.weight"],
        "value.weight": theirs["V.weight"],
        "pair_scale.weight": scale,
        "pair_scale.bias": scale_bias,
        "pair_shift.weight": shift,
        "pair_shift.bias": shift_bias,
        "score": theirs["Aw"][:, :, 0].t(),
        "pair_value": theirs["VeRow"].transpose(0, 1),
    }.items():
        assert_close(attention.get_parameter(ours).grad, wanted, 1e-6)


def attended_pairs(data_list, kind):
    """The (query, key) pairs of a batch, in order, from the graphs alone; the edge j -> i is the pair (i, j)."""
    wanted, first = set(), 0
    for data in data_list:
        nodes = range(first, first + data.num_nodes)
        if kind == "all":
            wanted |= {(i, j) for i in nodes for j in nodes}
        else:
            wanted |= {(i, i) for i in nodes} | {(first + i, first + j) for j, i in data.edge_index.t().tolist()}
        first += data.num_nodes
    return sorted(wanted)


def oracle(attention, x, pair, pair_list):
    """Equation (2) head by head and pair by pair, without any packed operation."""
    heads, channels = attention.num_heads, attention.head_dim
    keys_of = {i: [(p, j) for p, (query, j) in enumerate(pair_list) if query == i] for i in range(len(x))}
    node_out, pair_out = torch.zeros_like(x), torch.zeros_like(pair)
    weights = pair.new_zeros(len(pair_list), heads)
    for h in range(heads):
        part = slice(h * channels, (h + 1) * channels)
        query = x @ attention.query.weight[part].t() + attention.query.bias[part]
        key = x @ attention.key.weight[part].t()
        value = x @ attention.value.weight[part].t()
        scale = pair @ attention.pair_scale.weight[part].t() + attention.pair_scale.bias[part]
        shift = pair @ attention.pair_shift.weight[part].t() + attention.pair_shift.bias[part]
        for i, row in keys_of.items():
            logits = []
            for p, j in row:
                z = (query[i] + key[j]) * scale[p]
                e_hat = torch.relu(z.sign() * z.abs().sqrt() + shift[p])
                pair_out[p, part] = e_hat
                logits.append((attention.score[h] * e_hat).sum().clamp(-attention.clamp, attention.clamp))
            for (p, j), weight in zip(row, torch.softmax(torch.stack(logits), 0), strict=True):
                weights[p, h] = weight
                node_out[i, part] += weight * (value[j] + pair_out[p, part] @ attention.pair_value[h])
    return node_out, pair_out, weights


@given(
    st.lists(graphs(max_nodes=4), min_size=1, max_size=3),
    st.sampled_from(["all", "edges"]),
    st.sampled_from([(4, 1), (6, 2), (6, 3)]),
    st.floats(0.1, 5.0),
    st.integers(0, 1000),
)
@torch.no_grad()
def test_packed_attention_is_the_equation(data_list, kind, width, clamp, seed):
    torch.manual_seed(seed)
    dim, heads = width
    attention = GritAttention(hidden_dim=dim, num_heads=heads, clamp=clamp).double()
    packed, pair_list = pack(data_list), attended_pairs(data_list, kind)
    x = torch.randn(packed.num_nodes, dim).double()
    pair = 3 * torch.randn(len(pair_list), dim).double()
    out = attention(x, pair, grit.choose_pairs(packed, kind))
    for got, wanted in zip(out, oracle(attention, x, pair, pair_list), strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("dropout", [0.0, 0.3, 0.75])
def test_one_mask_after_the_softmax_for_both_sums(dropout):
    """Value j and pair (i, j) are unit vectors of their own, so that each channel shows one weight of one sum."""
    torch.manual_seed(0)
    n, heads = 40, 3
    pairs = grit.choose_pairs(pack([_edgeless(n)]))
    unit = torch.eye(2 * n).unsqueeze(1).expand(-1, heads, -1)  # (2n, H, 2n)
    logits = torch.randn(heads, n)
    out = grit_attention(
        torch.zeros(n, heads, 2 * n),
        torch.zeros(n, heads, 2 * n),
        unit[:n],
        torch.zeros(n * n, heads, 2 * n),
        unit[n + pairs.key],
        torch.cat([torch.zeros(heads, n), logits], 1),
        torch.eye(2 * n).expand(heads, -1, -1),
        pairs,
        clamp=None,
        activation=torch.relu,
        attention_dropout=dropout,
    )
    softmax = logits.softmax(1).t()  # (n, H), the same for every query
    torch.testing.assert_close(out.weights, softmax.repeat(n, 1))  # undropped
    from_nodes, from_pairs = out.node.view(n, heads, 2, n).unbind(2)
    torch.testing.assert_close(from_nodes, from_pairs)
    ratio = from_nodes / softmax.t()
    kept = ratio > 0
    torch.testing.assert_close(ratio, kept / (1 - dropout))
    assert abs(kept.float().mean() - (1 - dropout)) <= 4 * (dropout * (1 - dropout) / kept.numel()) ** 0.5
    if dropout:
        assert not torch.equal(kept[:, 0], kept[:, 1])  # each head drops for itself
        assert not torch.equal(kept[0], kept[1])  # and each query


def test_the_probability_reaches_the_weights_in_training_alone():
    torch.manual_seed(0)
    attention = GritAttention(hidden_dim=8, num_heads=2, attention_dropout=0.9)
    attention.value.weight.data.zero_()
    attention.pair_value.data.copy_(torch.eye(4).expand(2, -1, -1))
    attention.pair_scale.weight.data.zero_()
    attention.pair_scale.bias.data.zero_()
    attention.pair_shift.weight.data.zero_()
    attention.pair_shift.bias.data.fill_(1.0)  # so that x̂ is the sum of the weights that are left
    pairs = grit.choose_pairs(pack([_edgeless(30)]))
    x, pair = torch.randn(30, 8), torch.randn(900, 8)
    torch.testing.assert_close(attention.eval()(x, pair, pairs).node, torch.ones(30, 8))
    rest = attention.train()(x, pair, pairs).node
    kept = rest * 30 * 0.1  # weights are 1/30 each, those kept ten times that
    torch.testing.assert_close(kept, kept.round(), atol=1e-4, rtol=0)
    assert abs(kept[:, ::4].mean() / 30 - 0.1) <= 4 * (0.1 * 0.9 / (2 * 900)) ** 0.5


def _edgeless(n):
    from torch_geometric.data import Data

    return Data(edge_index=torch.zeros(2, 0, dtype=torch.int64), num_nodes=n)


@given(st.lists(graphs(max_nodes=4), min_size=2, max_size=3), st.integers(0, 1000))
def test_gradcheck(data_list, seed):
    torch.manual_seed(seed)
    attention = GritAttention(hidden_dim=4, num_heads=2, clamp=None).double()
    packed = pack(data_list)
    pairs = grit.choose_pairs(packed)
    # Away from the kinks of ReLU and of the square root, where finite differences say nothing.
    attention.pair_shift.bias.data.add_(20.0)
    attention.query.bias.data.add_(10.0)
    attention.pair_scale.bias.data.add_(10.0)
    x = torch.randn(packed.num_nodes, 4, dtype=torch.float64).mul_(0.3).requires_grad_()
    pair = torch.randn(pairs.num_pairs, 4, dtype=torch.float64).mul_(0.3).requires_grad_()
    assert torch.autograd.gradcheck(lambda a, b: attention(a, b, pairs)[:2], (x, pair), atol=1e-6)


def test_exact_zeros_under_the_square_root_have_gradient_zero():
    attention = GritAttention(hidden_dim=4, num_heads=2).double()
    attention.pair_scale.bias.data.zero_()
    pairs = grit.choose_pairs(pack([_edgeless(3)]))
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    pair = torch.zeros(9, 4, dtype=torch.float64, requires_grad=True)  # so that W_Ew e = 0 exactly
    attention(x, pair, pairs).pair.sum().backward()
    assert torch.equal(x.grad, torch.zeros_like(x))
    assert torch.isfinite(pair.grad).all()
    assert torch.equal(attention.pair_scale.weight.grad, torch.zeros(4, 4, dtype=torch.float64))


def test_activation_and_clamp_matter():
    torch.manual_seed(0)
    pairs = grit.choose_pairs(pack([_edgeless(3)]))
    x, pair = torch.randn(3, 8), 9 * torch.randn(9, 8)
    weights = GritAttention(hidden_dim=8, num_heads=2).state_dict()
    outputs = []
    for options in ({}, {"activation": "gelu"}, {"clamp": None}, {"clamp": 0.1}):
        attention = GritAttention(hidden_dim=8, num_heads=2, **options)
        attention.load_state_dict(weights)
        outputs.append(attention(x, pair, pairs).node)
    for other in outputs[1:]:
        assert not torch.allclose(outputs[0], other)


def test_initialisation_is_the_released_one():
    torch.manual_seed(0)
    dim, heads, channels = 256, 8, 32
    attention = GritAttention(hidden_dim=dim, num_heads=heads)
    expected = {
        "query.weight": (2 / (2 * dim)) ** 0.5,
        "key.weight": (2 / (2 * dim)) ** 0.5,
        "value.weight": (2 / (2 * dim)) ** 0.5,
        "pair_scale.weight": (2 / (3 * dim)) ** 0.5,
        "pair_shift.weight": (2 / (3 * dim)) ** 0.5,
        "score": (2 / (heads + channels)) ** 0.5,
        "pair_value": (2 / (channels * heads + channels * channels)) ** 0.5,
        "query.bias": (1 / dim) ** 0.5 / 3**0.5,
    }
    for name, std in expected.items():
        weight = attention.get_parameter(name)
        assert abs(weight.std().item() / std - 1) < 4 / weight.numel() ** 0.5, name
    # The same distributions as torch gives for the shapes of the released code.
    aw, ve = torch.empty(channels, heads, 1), torch.empty(channels, heads, channels)
    torch.nn.init.xavier_normal_(aw)
    torch.nn.init.xavier_normal_(ve)
    assert abs(aw.std().item() / expected["score"] - 1) < 0.25
    assert abs(ve.std().item() / expected["pair_value"] - 1) < 0.05


def test_width_must_be_divisible_by_heads():
    with pytest.raises(grit.GritError, match="hidden_dim 64 is not divisible by num_heads 7; .* num_heads=8"):
        GritAttention(hidden_dim=64, num_heads=7)
