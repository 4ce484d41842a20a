"""The fused unit against the plain form, which is the definition: one layer; `tests/nn/test_fused_stack.py` has several."""

import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

import grit
from grit import kernels
from grit.graphs.convert import pack
from grit.kernels.stack import layer_stack
from grit.nn.can_fuse import why_not_fused
from grit.nn.layer import GritLayer
from tests.graph_strategies import featured_graphs, graphs

pytestmark = pytest.mark.skipif(kernels.status().active != "fused", reason=kernels.status().reason)


def setting(data_list, *, kind="all", seed=0, dtype=torch.float64, training=True, **options):
    options = {"hidden_dim": 12, "num_heads": 2, **options}
    torch.manual_seed(seed)
    layer = GritLayer(**options).to(dtype).train(training)
    for parameter in layer.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    packed = pack(data_list)
    pairs = grit.choose_pairs(packed, kind)
    width = options["hidden_dim"]
    x, pair = torch.randn(packed.num_nodes, width, dtype=dtype), torch.randn(pairs.num_pairs, width, dtype=dtype)
    return layer, x, pair, pairs, torch.rand(packed.num_nodes, dtype=dtype)


def outcome(form, layer, x, pair, pairs, log_degree, *, seed=5):
    """Outputs, all gradients, and the buffers afterwards, for a loss that reads every output with its own weight."""
    layer = copy.deepcopy(layer)
    leaves = [t.clone().requires_grad_() for t in (x, pair)]
    torch.manual_seed(seed)
    with kernels.use(form):
        assert (why_not_fused([layer], x, pair, log_degree) is None) == (form == "fused")
        out_x, out_pair = layer(*leaves, pairs, log_degree)
    outputs = [out_x, out_pair] if layer.update_pairs else [out_x]
    torch.manual_seed(seed + 1)
    loss = sum((out * torch.randn_like(out)).sum() for out in outputs)
    wanted = [*leaves, *layer.parameters()]
    gradients = torch.autograd.grad(loss, wanted, allow_unused=True)
    return outputs, gradients, [b.clone() for b in layer.buffers()]


def assert_same(left, right, *, outputs, gradients):
    for ours, theirs in zip(left[0] + left[2], right[0] + right[2], strict=True):
        assert_near(ours, theirs, outputs)
    for ours, theirs in zip(left[1], right[1], strict=True):
        none = torch.zeros(()) if theirs is None else torch.zeros_like(theirs)
        assert_near(none if ours is None else ours, none if theirs is None else theirs, gradients)


def assert_near(ours, theirs, tolerance):
    size = (
        max(float(theirs.detach().abs().max()), 1e-3) if theirs.numel() else 1.0
    )  # a gradient that vanishes, vanishes
    torch.testing.assert_close(ours, theirs, rtol=0, atol=tolerance * size)


EDGES = torch.tensor([[0, 1, 2, 2], [1, 0, 3, 4]])
SEVERAL = [Data(edge_index=EDGES[:, :k], num_nodes=n) for n, k in ((5, 4), (9, 4), (23, 4), (1, 0), (14, 4))]


@given(
    st.lists(graphs(max_nodes=9), min_size=2, max_size=4),
    st.sampled_from(["all", "edges", "khop-2"]),
    st.sampled_from([(12, 2), (24, 3), (16, 16), (7, 1), (26, 2), (40, 8)]),
    st.sampled_from([5.0, 0.5, 60.0, None]),
    st.tuples(st.sampled_from([0.0, 0.3]), st.sampled_from([0.0, 0.4])),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["relu", "gelu"]),
)
def test_fused_is_plain(data_list, kind, shape, clamp, dropouts, training, update_pairs, activation):
    given = setting(
        data_list,
        kind=kind,
        training=training,
        activation=activation,
        hidden_dim=shape[0],
        num_heads=shape[1],
        clamp=clamp,
        attention_dropout=dropouts[0],
        dropout=dropouts[1],
        update_pairs=update_pairs,
    )
    if training and given[1].shape[0] == 1:
        return
    assert_same(outcome("fused", *given), outcome("plain", *given), outputs=1e-10, gradients=1e-8)


@pytest.mark.parametrize("shape", [(64, 8), (52, 4), (48, 8), (96, 4), (96, 8), (256, 8), (32, 32), (128, 4)])
@pytest.mark.parametrize("training", [True, False])
def test_the_published_widths(shape, training):
    given = setting(
        SEVERAL,
        training=training,
        hidden_dim=shape[0],
        num_heads=shape[1],
        attention_dropout=0.2,
        dropout=0.1,
    )
    assert_same(outcome("fused", *given), outcome("plain", *given), outputs=1e-10, gradients=1e-8)


def test_more_heads_than_lanes():
    given = setting(SEVERAL, hidden_dim=128, num_heads=64)
    assert_same(outcome("fused", *given), outcome("plain", *given), outputs=1e-10, gradients=1e-8)


@pytest.mark.parametrize("shape", [(64, 8), (52, 4), (48, 8)])
def test_float32_outputs_to_rounding(shape):
    given = setting(SEVERAL, dtype=torch.float32, hidden_dim=shape[0], num_heads=shape[1], training=False)
    ours, plain = outcome("fused", *given)[0], outcome("plain", *given)[0]
    doubled = setting(SEVERAL, hidden_dim=shape[0], num_heads=shape[1], training=False)
    for part, other in zip(given[0].state_dict().values(), doubled[0].state_dict().values(), strict=True):
        other.copy_(part)
    exact = outcome("plain", doubled[0], given[1].double(), given[2].double(), given[3], given[4].double())[0]
    for fused, plainly, truth in zip(ours, plain, exact, strict=True):
        # As near to the truth as the plain form is, give or take the last bits.
        error, allowed = (fused - truth).abs().max(), (plainly - truth).abs().max()
        assert error <= 4 * allowed + 1e-6 * truth.abs().max()


def test_float32_drops_the_same_as_the_plain_form():
    given = setting(SEVERAL, dtype=torch.float32, hidden_dim=26, num_heads=2, attention_dropout=0.4, dropout=0.3)
    for ours, theirs in zip(outcome("fused", *given)[0], outcome("plain", *given)[0], strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)  # another mask is off by more than 1


def test_one_and_two_threads_give_the_same_bits():
    torch.manual_seed(0)
    large = [Data(edge_index=torch.randint(60, (2, 200)), num_nodes=60) for _ in range(3)]
    given = setting(large, dtype=torch.float32, hidden_dim=64, num_heads=8, attention_dropout=0.2, dropout=0.1)
    assert given[3].num_pairs > 8000  # several chunks
    results = []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        outputs, gradients, buffers = outcome("fused", *given)
        results.append([*outputs, *gradients, *buffers])
    torch.set_num_threads(1)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


def test_gradcheck():
    layer, x, pair, pairs, log_degree = setting(
        SEVERAL[:2], hidden_dim=4, num_heads=2, attention_dropout=0.3, dropout=0.2
    )

    def run(x, pair):
        torch.manual_seed(0)
        with kernels.use("fused"):
            return copy.deepcopy(layer)(x, pair, pairs, log_degree)

    assert torch.autograd.gradcheck(run, (x.requires_grad_(), pair.requires_grad_()), atol=1e-5)


def test_zeros_under_the_root_have_gradient_zero():
    layer, x, pair, pairs, log_degree = setting(SEVERAL[:2])
    layer.attention.pair_scale.weight.data.zero_()
    layer.attention.pair_scale.bias.data.zero_()
    given = (layer, x, pair, pairs, log_degree)
    ours = outcome("fused", *given)
    assert all(torch.isfinite(g).all() for g in ours[1] if g is not None)
    assert_same(ours, outcome("plain", *given), outputs=1e-10, gradients=1e-8)


@pytest.mark.parametrize("where", ["score", "pair_scale.weight", "pair_shift.bias", "query.weight", "value.weight"])
def test_a_nan_weight_gives_nan(where):
    layer, x, pair, pairs, log_degree = setting(SEVERAL, dtype=torch.float32, training=False)
    layer.attention.get_parameter(where).data.view(-1)[0] = torch.nan
    with kernels.use("fused"), torch.no_grad():
        out, _ = layer(x, pair, pairs, log_degree)
    assert torch.isnan(out).any(1).all()


def test_infinity_is_not_swallowed():
    layer, x, pair, pairs, log_degree = setting(SEVERAL, dtype=torch.float32, training=False)
    pair[0, 0] = torch.inf
    with kernels.use("fused"), torch.no_grad():
        out, rows = layer(x, pair, pairs, log_degree)
    assert not torch.isfinite(rows[0]).all()
    assert not torch.isfinite(out[0]).all()


@given(st.lists(featured_graphs(max_nodes=7), min_size=2, max_size=3))
def test_whole_models_agree(data_list):
    recipe = grit.load_recipe(
        "zinc", "model.num_layers=3", "model.hidden_dim=16", "model.num_heads=4", "encoding.walk_steps=5"
    )
    torch.manual_seed(0)
    model = grit.build_model(recipe).double()
    batch = grit.PairBatch.from_data_list(data_list, walk_steps=5, dtype=torch.float64)
    if batch.graphs.num_nodes < 2:
        return
    results = []
    for form in ("plain", "fused"):
        copied = copy.deepcopy(model)
        torch.manual_seed(1)
        with kernels.use(form):
            out = copied(batch)
            out.square().sum().backward()
        results.append([out.detach(), *(p.grad for p in copied.parameters() if p.grad is not None)])
    assert len(results[0]) == len(results[1])
    for ours, theirs in zip(results[1], results[0], strict=True):
        assert_near(ours, theirs, 1e-7)


def test_evaluation_keeps_nothing_and_gives_the_same():
    given = setting(SEVERAL, training=False)
    layer, *inputs = given
    with kernels.use("fused"), torch.no_grad():
        outputs = layer(*inputs)
    for ours, theirs in zip(outputs, outcome("fused", *given)[0], strict=True):
        assert torch.equal(ours, theirs)
        assert ours.grad_fn is None


def test_compiled_and_exported():
    layer, x, pair, pairs, log_degree = setting(SEVERAL[:3], dtype=torch.float32, training=False)

    class Fused(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def forward(self, x, rows):
            return self.layer(x, rows, pairs, log_degree)[0]

    module = Fused()
    with kernels.use("fused"), torch.no_grad():
        wanted = module(x, pair)
        compiled = torch.compile(module, backend="aot_eager", fullgraph=True)
        torch.testing.assert_close(compiled(x, pair), wanted)
        exported = torch.export.export(module, (x, pair))
        assert "grit.layer_stack" in str(exported.graph)
        torch.testing.assert_close(exported.module()(x, pair), wanted)


def test_compiled_gradients():
    layer, x, pair, pairs, log_degree = setting(SEVERAL[:3], dtype=torch.float64)
    results = []
    with kernels.use("fused"):
        for run in (layer, torch.compile(layer, backend="aot_eager", fullgraph=True)):
            leaves = [t.clone().requires_grad_() for t in (x, pair)]
            out, rows = run(*leaves, pairs, log_degree)
            results.append(torch.autograd.grad((out.sin().sum() + rows.sin().sum()), leaves))
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize(("training", "update_pairs"), [(True, True), (False, True), (True, False)])
def test_the_operator_passes_torchs_own_checks(training, update_pairs, monkeypatch):
    layer, x, pair, pairs, log_degree = setting(
        SEVERAL[:2], hidden_dim=4, num_heads=2, training=training, update_pairs=update_pairs, attention_dropout=0.1
    )
    seen = []

    def watched(*arguments):
        seen.append(arguments)
        return layer_stack(*arguments)

    monkeypatch.setattr("grit.nn.fused_stack.layer_stack", watched)
    with kernels.use("fused"):
        layer(x.requires_grad_(), pair.requires_grad_(), pairs, log_degree)
    leaves = (a.detach().requires_grad_(a.requires_grad) if isinstance(a, torch.Tensor) else a for a in seen[0])
    torch.library.opcheck(
        torch.ops.grit.layer_stack.default,
        tuple(leaves),
        test_utils=("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic"),
    )


def test_what_was_not_kept_cannot_be_differentiated(monkeypatch):
    layer, x, pair, pairs, log_degree = setting(SEVERAL[:2])
    monkeypatch.setattr("grit.nn.fused_stack.layer_stack", lambda *arguments: layer_stack(*arguments[:-1], False))
    with kernels.use("fused"):
        out, _ = layer(x, pair, pairs, log_degree)
    with pytest.raises(grit.GritError, match="keep=False"):
        out.sum().backward()
