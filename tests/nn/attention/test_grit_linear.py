import torch
from torch_geometric.data import Data

import grit
from grit.graphs.convert import pack
from grit.nn.attention.grit import GritAttention
from grit.nn.attention.grit_linear import GritLinearAttention


def setting():
    torch.manual_seed(0)
    packed = pack([Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=3)])
    pairs = grit.choose_pairs(packed, "all")
    linear = GritLinearAttention(hidden_dim=8, num_heads=2).double()
    return linear, torch.randn(3, 8).double(), torch.randn(9, 8).double(), pairs


def test_the_equation():
    linear, x, pair, pairs = setting()
    i, j = pairs.query, pairs.key
    product = (linear.query(x)[i] + linear.key(x)[j]) * linear.pair_scale(pair)
    out = linear(x, pair, pairs)
    torch.testing.assert_close(out.pair, torch.relu(product + linear.pair_shift(pair)))
    logits = (out.pair.view(9, 2, 4) * linear.score).sum(-1).clamp(-5, 5)
    torch.testing.assert_close(out.weights, logits.view(3, 3, 2).softmax(1).flatten(0, 1))


def test_differs_from_grit_by_the_square_root_alone():
    linear, x, pair, pairs = setting()
    with_root = GritAttention(hidden_dim=8, num_heads=2).double()
    with_root.load_state_dict(linear.state_dict())
    assert not torch.allclose(linear(x, pair, pairs).node, with_root(x, pair, pairs).node)
    # Where every product is 1, so is its square root.
    for attention in (linear, with_root):
        for map_ in (attention.query, attention.key, attention.pair_scale):
            torch.nn.init.zeros_(map_.weight)
        torch.nn.init.ones_(attention.query.bias)
        torch.nn.init.ones_(attention.pair_scale.bias)
    torch.testing.assert_close(linear(x, pair, pairs).node, with_root(x, pair, pairs).node)


def test_a_layer_gives_the_same_with_either_form_of_the_kernels():
    from grit import kernels

    _, x, pair, pairs = setting()
    torch.manual_seed(0)
    layer = grit.GritLayer(hidden_dim=8, num_heads=2, attention="grit-linear").eval()
    outputs = []
    for form in ("plain", "auto"):
        with kernels.use(form):
            outputs.append(layer(x.float(), pair.float(), pairs, torch.ones(3)))
    assert all(torch.equal(one, other) for one, other in zip(*outputs, strict=True))
