"""What PyTorch users do to modules every day works in both forms, and gives what the plain form gives."""

import copy
import io
import pickle

import pytest
import torch
from torch import nn
from torch.func import functional_call
from torch.nn.utils import parametrize, prune
from torch.utils.checkpoint import checkpoint

import grit
from grit import kernels
from grit.kernels.plain import signed_sqrt
from grit.nn.attention import ATTENTIONS, GritAttention
from grit.nn.layer import GritLayer
from tests.models.test_grit import batch_of, small_model
from tests.nn.test_fused_stack import some_graph

pytestmark = pytest.mark.usefixtures("each_form")


@pytest.fixture(scope="module")
def batch():
    return batch_of([some_graph(n, seed) for seed, n in enumerate((9, 2, 6))])


def step(model, batch, seed=0):
    """Predictions, gradients and buffers of a copy."""
    model = copy.deepcopy(model)
    torch.manual_seed(seed)
    out = model(batch)
    out.sin().sum().backward()
    return out.detach(), {n: p.grad for n, p in model.named_parameters()}, dict(model.named_buffers())


def assert_same(ours, theirs):
    torch.testing.assert_close(ours[0], theirs[0], rtol=1e-8, atol=1e-8)
    largest = max(grad.abs().max() for grad in theirs[1].values() if grad is not None)
    for name, grad in theirs[1].items():
        assert (grad is None) == (ours[1][name] is None), name
        if grad is not None:
            assert (ours[1][name] - grad).abs().max() <= 1e-8 * grad.abs().max() + 1e-12 * largest, name
    for name, buffer in theirs[2].items():
        torch.testing.assert_close(ours[2][name], buffer, rtol=1e-8, atol=1e-8)


def assert_as_plain(model, batch):
    ours = step(model, batch)
    with kernels.use("plain"):
        assert_same(ours, step(model, batch))
    return ours


# Subclasses and replaced parts.


class Tanh(GritAttention):
    def rho(self, z):
        return torch.tanh(z)


class Doubled(GritAttention):
    def forward(self, x, pair, pairs):
        out = super().forward(x, pair, pairs)
        return out._replace(node=2 * out.node)


@pytest.mark.parametrize("kind", [Tanh, Doubled])
def test_a_subclass_of_the_attention_is_used(batch, kind, monkeypatch):
    monkeypatch.setitem(ATTENTIONS, "mine", kind)
    model = small_model(attention="mine", attention_dropout=0.2)
    ours = assert_as_plain(model, batch)
    usual = small_model(attention_dropout=0.2)
    usual.load_state_dict(model.state_dict())
    assert (ours[0] - step(usual, batch)[0]).abs().max() > 1e-3


class MyLayer(GritLayer):
    def forward(self, x, pair, pairs, log_degree):
        x, pair = super().forward(x, pair, pairs, log_degree)
        return 3 * x, pair


def test_a_subclass_of_the_layer_is_used(batch):
    model, other = small_model(), small_model()
    model.layers[1].__class__ = MyLayer
    assert not torch.allclose(assert_as_plain(model, batch)[0], step(other, batch)[0])


def test_a_method_replaced_on_an_object_is_used(batch):
    model, other = small_model(), small_model()
    model.layers[1].ffn_in.forward = lambda rows: torch.zeros(rows.shape[0], 16, dtype=rows.dtype)
    model.layers[0].attention.rho = torch.tanh
    assert not torch.allclose(model(batch), other(batch))
    with kernels.use("plain"):
        plain = model.train()(batch)
    torch.testing.assert_close(model(batch), plain)


def test_a_method_replaced_on_the_class_is_used(batch, monkeypatch):
    model = small_model().eval()
    before = model(batch)
    monkeypatch.setattr(GritAttention, "rho", lambda self, z: torch.tanh(z))
    after = model(batch)
    assert not torch.allclose(before, after)
    with kernels.use("plain"):
        torch.testing.assert_close(after, model(batch))


class Lora(nn.Module):
    """A low-rank adapter around a linear map."""

    def __init__(self, linear):
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.down = nn.Linear(linear.in_features, 2, bias=False, dtype=linear.weight.dtype)
        self.up = nn.Linear(2, linear.out_features, bias=False, dtype=linear.weight.dtype)

    def forward(self, x):
        return self.linear(x) + self.up(self.down(x))


LINEARS = [
    *(f"attention.{name}" for name in ("query", "key", "value", "pair_scale", "pair_shift")),
    *("node_out", "pair_out", "ffn_in", "ffn_out"),
]


@pytest.mark.parametrize("where", LINEARS)
def test_an_adapter_in_place_of_a_linear_map_is_used(batch, where):
    torch.manual_seed(0)
    model = small_model(num_layers=3)
    layer = model.layers[1]
    layer.set_submodule(where, Lora(layer.get_submodule(where)))
    ours = assert_as_plain(model, batch)
    assert ours[1][f"layers.1.{where}.up.weight"].abs().max() > 0


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize(
    "wrap",
    [
        nn.utils.spectral_norm,
        nn.utils.weight_norm,
        nn.utils.parametrizations.spectral_norm,
        nn.utils.parametrizations.weight_norm,
        lambda linear: prune.random_unstructured(linear, "weight", 0.5),
    ],
)
@pytest.mark.parametrize("where", ["attention.query", "ffn_in"])
def test_reparametrised_weights(batch, wrap, where):
    """Over three steps in which weights move: nothing goes stale, nothing is differentiated through twice."""
    models = []
    for _ in range(2):
        torch.manual_seed(0)
        models.append(small_model(num_layers=2).train())
        wrap(models[-1].layers[0].get_submodule(where))
    for _ in range(3):
        results = []
        for model, form in zip(models, (kernels.status().choice, "plain"), strict=True):
            model.zero_grad()
            with kernels.use(form):
                out = model(batch)
            out.sin().sum().backward()
            grads = {name: p.grad for name, p in model.named_parameters()}
            results.append((out.detach(), grads, dict(model.named_buffers())))
            with torch.no_grad():
                for p in model.parameters():
                    if p.grad is not None:
                        p.sub_(0.01 * p.grad)
        assert_same(*results)


def test_a_parametrisation_is_used(batch):
    class Twice(nn.Module):
        def forward(self, weight):
            return 2 * weight

    model, other = small_model(), small_model()
    parametrize.register_parametrization(model.layers[1].attention.value, "weight", Twice())
    assert not torch.allclose(assert_as_plain(model, batch)[0], step(other, batch)[0])


# Hooks.


def test_every_module_calls_its_hooks(batch):
    model, seen = small_model(num_layers=2), set()
    for name, module in model.named_modules():
        module.register_forward_hook(lambda m, given, out, name=name: seen.add(name))
    model(batch)
    lists = {"layers", "head.linears"}
    unused = {"layers.1.pair_out", "layers.1.pair_norm"}  # the last layer does not rewrite pairs
    assert seen == {name for name, _ in model.named_modules()} - lists - unused


@pytest.mark.parametrize(
    "where", ["layers.0", "layers.1", "layers.0.attention", "layers.1.node_norm", "layers.0.ffn_in"]
)
@pytest.mark.parametrize("kind", ["forward", "forward_pre", "full_backward", "full_backward_pre"])
def test_hooks_fire_and_change_nothing(batch, where, kind):
    model, calls = small_model(attention_dropout=0.2).train(), []
    torch.manual_seed(0)
    without = model(batch)
    without.sin().sum().backward()
    grads = [p.grad for p in model.parameters()]
    model.zero_grad()
    handle = getattr(model.get_submodule(where), f"register_{kind}_hook")(lambda *arguments: calls.append(arguments))
    torch.manual_seed(0)
    out = model(batch)
    out.sin().sum().backward()
    handle.remove()
    assert len(calls) == 1
    torch.testing.assert_close(out, without, rtol=1e-8, atol=1e-8)
    largest = max(grad.abs().max() for grad in grads if grad is not None)
    for ours, theirs in zip((p.grad for p in model.parameters()), grads, strict=True):
        if theirs is not None:
            assert (ours - theirs).abs().max() <= 1e-8 * largest


def test_a_hook_on_all_modules(batch):
    model, seen = small_model().eval(), []
    handle = nn.modules.module.register_module_forward_hook(lambda module, given, out: seen.append(type(module)))
    try:
        model(batch)
    finally:
        handle.remove()
    assert seen.count(GritLayer) == 2
    assert seen.count(GritAttention) == 2


def test_ablation_by_a_hook(batch):
    """What Captum's feature ablation does: a hook replaces what a layer gives."""
    model = small_model(num_layers=3).eval()
    before = model(batch)
    handle = model.layers[1].register_forward_hook(lambda module, given, out: (torch.zeros_like(out[0]), out[1]))
    ours = model(batch)
    with kernels.use("plain"):
        torch.testing.assert_close(ours, model(batch), rtol=1e-8, atol=1e-8)
    handle.remove()
    assert not torch.allclose(ours, before)
    torch.testing.assert_close(model(batch), before)


def test_features_taken_by_a_hook(batch):
    model, taken = small_model(num_layers=3).eval(), []
    handle = model.layers[0].register_forward_hook(lambda module, given, out: taken.append(out[0]))
    model(batch)
    handle.remove()
    x, pair = model.stem(batch)
    torch.testing.assert_close(taken[0], model.layers[0](x, pair, batch.pairs, batch.log_degree)[0])


class Wrapper(nn.Module):
    """What FSDP and its kind put around a layer."""

    def __init__(self, module):
        super().__init__()
        self.module = module
        self.calls = 0

    def forward(self, *arguments):
        self.calls += 1
        return self.module(*arguments)


def test_every_layer_wrapped(batch):
    model = small_model(num_layers=3, attention_dropout=0.2)
    whole = step(model, batch)
    for number in range(3):
        model.layers[number] = Wrapper(model.layers[number])
    wrapped = assert_as_plain(model, batch)
    torch.testing.assert_close(wrapped[0], whole[0], rtol=1e-8, atol=1e-8)
    model(batch)
    assert [layer.calls for layer in model.layers] == [1, 1, 1]


# Derivatives.


def test_the_signed_root_at_zero():
    z = torch.tensor([0.0, 1.0, -4.0], dtype=torch.float64)
    out, slope = torch.func.jvp(signed_sqrt, (z,), (torch.ones(3, dtype=torch.float64),))
    assert out.tolist() == [0.0, 1.0, -2.0]
    assert slope.tolist() == [0.0, 0.5, 0.25]
    assert torch.func.vmap(torch.func.grad(signed_sqrt))(z).tolist() == [0.0, 0.5, 0.25]
    second = torch.func.vmap(torch.func.grad(torch.func.grad(signed_sqrt)))(z)
    assert second.tolist() == [0.0, -0.25, 0.03125]
    third = torch.func.vmap(torch.func.jacfwd(torch.func.grad(torch.func.grad(signed_sqrt))))(z)
    assert third[0] == 0
    assert torch.isfinite(third).all()


def test_a_second_derivative(batch):
    """Of the loss's gradient, along a direction, against finite differences of the first derivative."""
    model = small_model(attention_dropout=0.2).train()
    weights = [model.layers[0].ffn_in.weight, model.layers[1].attention.query.weight, model.stem.pair_encoding.weight]
    torch.manual_seed(3)
    direction = [torch.randn_like(weight) for weight in weights]

    def slope(create_graph):
        torch.manual_seed(1)
        grads = torch.autograd.grad(model(batch).sin().sum(), weights, create_graph=create_graph)
        return sum((grad * d).sum() for grad, d in zip(grads, direction, strict=True))

    second = torch.autograd.grad(slope(True), weights)
    ours = sum((grad * d).sum() for grad, d in zip(second, direction, strict=True))
    shift = 1e-6
    values = []
    for sign in (1, -1):
        with torch.no_grad():
            for weight, d in zip(weights, direction, strict=True):
                weight += sign * shift * d
        values.append(slope(False))
        with torch.no_grad():
            for weight, d in zip(weights, direction, strict=True):
                weight -= sign * shift * d
    assert ours.abs() > 1e-4
    torch.testing.assert_close(ours, (values[0] - values[1]) / (2 * shift), rtol=2e-4, atol=1e-6)


@pytest.mark.parametrize("mode", [True, False])
def test_a_second_derivative_is_that_of_the_plain_form(batch, mode):
    model = small_model(attention_dropout=0.2, dropout=0.1, activation="gelu").train(mode)
    results = []
    for form in (None, "plain"):
        torch.manual_seed(1)
        with kernels.use(form or kernels.status().choice):
            out = model(batch).sin().sum()
        grads = torch.autograd.grad(out, list(model.parameters()), create_graph=True, allow_unused=True)
        penalty = sum(grad.square().sum() for grad in grads if grad is not None)
        results.append(torch.autograd.grad(penalty, list(model.parameters()), allow_unused=True))
    largest = max(grad.abs().max() for grad in results[1] if grad is not None)
    for ours, theirs in zip(*results, strict=True):
        if theirs is None or ours is None:
            assert theirs is None or theirs.abs().max() <= 1e-12 * largest
            assert ours is None or ours.abs().max() <= 1e-12 * largest
        else:
            assert torch.isfinite(ours).all()
            assert (ours - theirs).abs().max() <= 1e-8 * largest


def test_a_second_derivative_with_a_layer_used_twice(batch):
    model = small_model(num_layers=3).train()
    model.layers[1] = model.layers[0]
    weight, results = model.layers[0].ffn_in.weight, []
    for form in (None, "plain"):
        with kernels.use(form or kernels.status().choice):
            (grad,) = torch.autograd.grad(model(batch).sin().sum(), [weight], create_graph=True)
        results.append(torch.autograd.grad(grad.square().sum(), [weight])[0])
    torch.testing.assert_close(*results, rtol=1e-8, atol=1e-8 * results[1].abs().max())


def inputs_for(layer_options, sizes=(4, 3)):
    torch.manual_seed(0)
    layer = GritLayer(hidden_dim=4, num_heads=2, **layer_options).double()
    batch = batch_of([some_graph(n, n) for n in sizes])
    x = torch.randn(batch.num_nodes, 4, dtype=torch.float64, requires_grad=True)
    pair = torch.randn(batch.num_pairs, 4, dtype=torch.float64, requires_grad=True)
    return layer, x, pair, batch


@pytest.mark.parametrize("mode", [True, False])
def test_gradcheck(mode):
    layer, x, pair, batch = inputs_for({"attention_dropout": 0.2, "dropout": 0.1})
    layer.train(mode)

    def run(x, pair):
        torch.manual_seed(0)
        return layer(x, pair, batch.pairs, batch.log_degree)

    assert torch.autograd.gradcheck(run, (x, pair), atol=1e-5)


@pytest.mark.parametrize("mode", [True, False])
def test_gradgradcheck(mode):
    layer, x, pair, batch = inputs_for({}, sizes=(3,))
    layer.train(mode)
    assert torch.autograd.gradgradcheck(
        lambda x, pair: layer(x, pair, batch.pairs, batch.log_degree), (x, pair), atol=1e-4, rtol=1e-3
    )


# torch.func.


def as_function(model, batch, mode):
    model.train(mode)
    parameters = {name: p.detach() for name, p in model.named_parameters()}
    buffers = {name: b.detach().clone() for name, b in model.named_buffers()}

    def loss(parameters):
        copied = {name: b.clone() for name, b in buffers.items()}
        return functional_call(model, (parameters, copied), (batch,)).sin().sum()

    return loss, parameters


def test_functional_call(batch):
    model = small_model(num_layers=2).eval()
    other = {name: p + 0.1 for name, p in model.named_parameters()}
    ours = functional_call(model, other, (batch,))
    changed = copy.deepcopy(model)
    changed.load_state_dict(other, strict=False)
    torch.testing.assert_close(ours, changed(batch))


def test_functional_call_differentiates(batch):
    loss, parameters = as_function(small_model(), batch, False)
    leaves = {name: p.clone().requires_grad_() for name, p in parameters.items()}
    grads = torch.autograd.grad(loss(leaves), list(leaves.values()), allow_unused=True)
    by_func = torch.func.grad(loss)(parameters)
    for (name, ours), grad in zip(by_func.items(), grads, strict=True):
        theirs = torch.zeros_like(ours) if grad is None else grad
        torch.testing.assert_close(ours, theirs, rtol=1e-8, atol=1e-8, msg=name)


def test_jvp_is_the_gradient_along_a_direction(batch):
    loss, parameters = as_function(small_model(), batch, False)
    torch.manual_seed(0)
    direction = {name: torch.randn_like(p) for name, p in parameters.items()}
    _, along = torch.func.jvp(loss, (parameters,), (direction,))
    grads = torch.func.grad(loss)(parameters)
    torch.testing.assert_close(along, sum((grads[name] * direction[name]).sum() for name in grads))


def test_forward_mode_outside_torch_func(batch):
    model = small_model().eval()
    x, pair = (t.detach() for t in model.stem(batch))
    layer, tangent = model.layers[0], torch.randn_like(x)
    with torch.autograd.forward_ad.dual_level(), torch.no_grad():
        dual = torch.autograd.forward_ad.make_dual(x, tangent)
        out, _ = layer(dual, pair, batch.pairs, batch.log_degree)
        along = torch.autograd.forward_ad.unpack_dual(out).tangent
    assert along is not None
    _, wanted = torch.func.jvp(lambda x: layer(x, pair, batch.pairs, batch.log_degree)[0], (x,), (tangent,))
    torch.testing.assert_close(along, wanted)


def test_jacrev(batch):
    model = small_model().eval()
    x, pair = (t.detach() for t in model.stem(batch))
    layer = model.layers[0]
    jacobian = torch.func.jacrev(lambda x: layer(x, pair, batch.pairs, batch.log_degree)[0].sum(0))(x)
    leaf = x.clone().requires_grad_()
    out = layer(leaf, pair, batch.pairs, batch.log_degree)[0].sum(0)
    rows = [torch.autograd.grad(value, leaf, retain_graph=True)[0] for value in out]
    torch.testing.assert_close(jacobian, torch.stack(rows), rtol=1e-8, atol=1e-8)


def test_vmap_over_models(batch):
    models = [small_model(seed=seed).eval() for seed in range(3)]
    parameters, buffers = torch.func.stack_module_state(models)
    ours = torch.vmap(lambda p, b: functional_call(models[0], (p, b), (batch,)))(parameters, buffers)
    torch.testing.assert_close(ours, torch.stack([model(batch) for model in models]), rtol=1e-8, atol=1e-8)


# Copies and files.


def test_copies(batch):
    model = small_model().eval()
    wanted = model(batch)
    stream = io.BytesIO()
    torch.save(model.state_dict(), stream)
    stream.seek(0)
    loaded = small_model(seed=5).eval()
    loaded.load_state_dict(torch.load(stream, weights_only=True))
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model)), loaded):
        assert torch.equal(other(batch), wanted)


def test_a_copy_after_a_backward_pass_is_a_model_of_its_own(batch):
    model = small_model().train()
    model(batch).sum().backward()
    other = copy.deepcopy(model)
    with torch.no_grad():
        other.layers[0].ffn_in.weight.zero_()
    assert not torch.allclose(other(batch), model(batch))


# Tools of torch.


@pytest.mark.parametrize("reentrant", [False, True])
def test_gradient_checkpointing(batch, reentrant):
    model = small_model(num_layers=3, attention_dropout=0.2).train()
    torch.manual_seed(0)
    x, pair = model.stem(batch)
    for layer in model.layers:
        x, pair = layer(x, pair, batch.pairs, batch.log_degree)
    wanted = torch.autograd.grad(x.sin().sum(), model.layers[0].ffn_in.weight)
    torch.manual_seed(0)
    x, pair = model.stem(batch)
    for layer in model.layers:
        x, pair = checkpoint(layer, x, pair, batch.pairs, batch.log_degree, use_reentrant=reentrant)
    x.sin().sum().backward()
    torch.testing.assert_close(model.layers[0].ffn_in.weight.grad, wanted[0], rtol=1e-8, atol=1e-10)


def test_a_whole_model_checkpointed(batch):
    model = small_model(num_layers=3, attention_dropout=0.2, dropout=0.1).train()
    wanted = step(model, batch)
    torch.manual_seed(0)
    checkpoint(model, batch, use_reentrant=False).sin().sum().backward()
    for name, p in model.named_parameters():
        if p.grad is not None:
            torch.testing.assert_close(p.grad, wanted[1][name], rtol=1e-8, atol=1e-10)


def test_update_bn(batch):
    other = batch_of([some_graph(n, 7 * n) for n in (5, 8)])
    model = small_model(num_layers=2)
    torch.optim.swa_utils.update_bn([batch, other], model)
    ours = dict(model.named_buffers())
    model = small_model(num_layers=2)
    with kernels.use("plain"):
        torch.optim.swa_utils.update_bn([batch, other], model)
    for name, buffer in model.named_buffers():
        torch.testing.assert_close(ours[name], buffer, rtol=1e-8, atol=1e-8)
    norm = model.layers[0].node_norm
    assert int(norm.num_batches_tracked) == 2
    assert norm.momentum == 0.1


def test_averaged_models(batch):
    model = small_model()
    averaged = torch.optim.swa_utils.AveragedModel(model)
    averaged.update_parameters(model)
    torch.testing.assert_close(averaged.eval()(batch), model.eval()(batch))


def test_saved_tensors_on_the_side(batch):
    model = small_model().train()
    wanted = step(model, batch)
    with torch.autograd.graph.save_on_cpu():
        torch.manual_seed(0)
        model(batch).sin().sum().backward()
    torch.testing.assert_close(model.layers[0].ffn_in.weight.grad, wanted[1]["layers.0.ffn_in.weight"])


def test_compiled_for_several_shapes_in_one_graph():
    """Of a layer, without a graph break; a new shape may compile once more, not every time."""
    model = small_model(num_layers=3).train()
    graphs = []

    def count(graph, example):
        graphs.append(graph)
        return graph.forward

    torch._dynamo.reset()
    layer = torch.compile(model.layers[0], backend=count, fullgraph=True, dynamic=True)
    for sizes in ((9, 2, 6), (5,), (7, 7), (3, 4, 5, 6)):
        given = batch_of([some_graph(n, n) for n in sizes])
        x, pair = (t.detach() for t in model.stem(given))
        ours = layer(x, pair, given.pairs, given.log_degree)
        wanted = model.layers[0](x, pair, given.pairs, given.log_degree)
        torch.testing.assert_close(ours, wanted, rtol=1e-8, atol=1e-8)
    assert len(graphs) <= 2
    with_unit = "layer_stack" in str(graphs[0].graph)
    assert with_unit == (kernels.status().active == "fused")


def test_compiled_gradients(batch):
    model = small_model(num_layers=2).train()
    wanted = step(model, batch)
    torch._dynamo.reset()
    torch.compile(model, backend="aot_eager")(batch).sin().sum().backward()
    for name, p in model.named_parameters():
        if p.grad is not None:
            torch.testing.assert_close(p.grad, wanted[1][name], rtol=1e-8, atol=1e-10)


def test_a_single_node_is_an_error_in_both_forms():
    lonely = batch_of([some_graph(1, 0)])
    with pytest.raises(grit.GritError, match="single node"):
        small_model().train()(lonely)
