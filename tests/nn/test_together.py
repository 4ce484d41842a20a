"""All layers in one operation against the same layers one by one."""

import copy
import dataclasses
from unittest import mock

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

import grit
from grit import kernels
from grit.nn import model as model_module
from grit.nn.together import can_run_together
from tests.graph_strategies import featured_graphs
from tests.nn.test_model import batch_of, small_model

pytestmark = pytest.mark.skipif(kernels.status().active != "fused", reason=kernels.status().reason)


@pytest.fixture(autouse=True)
def _fused():
    with kernels.use("fused"):
        yield


def training_step(model, batch, *, together, seed=1):
    """Predictions, gradients and buffers of a copy; which way was taken is checked."""
    model = copy.deepcopy(model).train()
    torch.manual_seed(seed)
    allowed = mock.patch.object(model_module, "can_run_together", side_effect=can_run_together if together else never)
    with allowed, mock.patch.object(model_module, "run_together", wraps=model_module.run_together) as run:
        out = model(batch)
    assert run.called is together
    (out * torch.linspace(1, 2, out.numel(), dtype=out.dtype).view_as(out)).sum().backward()
    return out.detach(), {name: p.grad for name, p in model.named_parameters()}, dict(model.named_buffers())


def never(*_):
    return False


def assert_same(ours, theirs):
    torch.testing.assert_close(ours[0], theirs[0], rtol=1e-10, atol=1e-10)
    largest = max(grad.abs().max() for grad in theirs[1].values() if grad is not None)
    for name, grad in theirs[1].items():
        if grad is None:
            assert ours[1][name] is None, name
        else:  # that of a bias before a normalisation is 0 but for rounding, of the size of what cancels
            error = (ours[1][name] - grad).abs().max()
            assert error <= 1e-8 * grad.abs().max() + 1e-13 * largest, name
    for name, buffer in theirs[2].items():
        torch.testing.assert_close(ours[2][name], buffer, rtol=1e-12, atol=1e-12)


@given(
    st.lists(featured_graphs(), min_size=2, max_size=4).filter(lambda graphs: sum(g.num_nodes for g in graphs) > 2),
    st.sampled_from(["all", "edges"]),
    st.sampled_from([1, 2, 3]),
    st.sampled_from(["scaler", "none"]),
    st.sampled_from([(0.0, 0.0), (0.3, 0.0), (0.0, 0.4), (0.5, 0.5)]),
    st.sampled_from([5.0, 0.01, None]),
)
def test_together_is_one_by_one(data_list, pairs, num_layers, degree, dropouts, clamp):
    attention_dropout, dropout = dropouts
    model = small_model(
        num_layers=num_layers, degree=degree, attention_dropout=attention_dropout, dropout=dropout, clamp=clamp
    )
    batch = batch_of(data_list, pairs=pairs)
    assert_same(training_step(model, batch, together=True), training_step(model, batch, together=False))


def some_graph(n, seed):
    generator = torch.Generator().manual_seed(seed)
    return Data(
        x=torch.randint(5, (n, 1), generator=generator),
        edge_index=torch.randint(n, (2, 3 * n), generator=generator),
        edge_attr=torch.randint(3, (3 * n,), generator=generator),
    )


@pytest.fixture(scope="module")
def batch():
    return batch_of([some_graph(n, seed) for seed, n in enumerate((30, 7, 45))])


@pytest.mark.parametrize(("hidden_dim", "num_heads"), [(64, 8), (24, 3), (52, 4), (10, 1)])
def test_other_widths(batch, hidden_dim, num_heads):
    model = small_model(hidden_dim=hidden_dim, num_heads=num_heads, num_layers=3, attention_dropout=0.2)
    assert_same(training_step(model, batch, together=True), training_step(model, batch, together=False))


def test_node_predictions(batch):
    model = small_model("node")
    assert_same(training_step(model, batch, together=True), training_step(model, batch, together=False))


def test_threads_do_not_matter(batch):
    results = []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            results.append(training_step(small_model(attention_dropout=0.2, dropout=0.1), batch, together=True))
    finally:
        torch.set_num_threads(1)
    torch.testing.assert_close(results[0], results[1], rtol=0, atol=0)


@pytest.mark.parametrize(
    "options",
    [
        {"norm": "layer"},
        {"activation": "gelu"},
        {"update_pairs": False},
        {"attention": "grit-linear"},
        {"attention": "graphormer", "update_pairs": False},
    ],
)
def test_unusual_layers_run_one_by_one(batch, options):
    training_step(small_model(**options), batch, together=False)
    model = small_model(**options).train()
    assert not can_run_together(list(model.layers), *model.stem(batch), batch.log_degree)


def test_what_is_no_training_step_runs_one_by_one(batch):
    model = small_model().train()
    arguments = (list(model.layers), *model.stem(batch), batch.log_degree)
    assert can_run_together(*arguments)
    with torch.no_grad():
        assert not can_run_together(*arguments)
    with kernels.use("plain"):
        assert not can_run_together(*arguments)
    model.layers[1].node_norm.eval()  # frozen statistics, as in fine-tuning
    assert not can_run_together(*arguments)
    assert not can_run_together(list(model.eval().layers), *arguments[1:])


def test_layers_that_differ_run_one_by_one(batch):
    model = small_model().train()
    arguments = (list(model.layers), *model.stem(batch), batch.log_degree)
    model.layers[1].dropout = 0.25
    assert not can_run_together(*arguments)


def test_frozen_weights_have_no_gradient(batch):
    model = small_model()
    model.layers[1].requires_grad_(False)
    model.stem.requires_grad_(False)
    assert_same(training_step(model, batch, together=True), training_step(model, batch, together=False))


def frozen_from_the_start(model):
    model.stem.requires_grad_(False)
    model.layers[0].requires_grad_(False)


def attention_in_evaluation(model):
    model.layers[1].attention.eval()


def other_eps(model):
    model.layers[1].pair_norm.eps = 0.5


def other_eps_everywhere(model):
    for layer in model.layers:
        layer.pair_norm.eps = 0.5


def other_momentum(model):
    model.layers[1].ffn_norm.momentum = 0.9


def other_feed_forward_width(model):
    model.layers[1].ffn_in, model.layers[1].ffn_out = torch.nn.Linear(8, 4).double(), torch.nn.Linear(4, 8).double()


def running_statistics_not_contiguous(model):
    model.layers[1].node_norm.running_mean = torch.zeros(8, 2, dtype=torch.float64)[:, 0]


def shared_layers(model):
    model.layers[0] = model.layers[2]


def no_layers(model):
    model.layers = torch.nn.ModuleList()


@pytest.mark.parametrize(
    "change",
    [
        frozen_from_the_start,
        attention_in_evaluation,
        other_eps,
        other_eps_everywhere,
        other_momentum,
        other_feed_forward_width,
        running_statistics_not_contiguous,
        shared_layers,
        no_layers,
    ],
)
def test_changed_models_run_one_by_one(batch, change):
    model = small_model(num_layers=3, attention_dropout=0.2).train()
    change(model)
    assert not can_run_together(list(model.layers), *model.stem(batch), batch.log_degree)
    model(batch).sum().backward()


def test_a_layer_shared_in_the_middle(batch):
    model = small_model(num_layers=4)
    model.layers[1] = model.layers[0]
    assert_same(training_step(model, batch, together=True), training_step(model, batch, together=False))


def test_missing_biases_and_other_types_are_errors(batch):
    model = small_model().train()
    model.layers[0].ffn_in = torch.nn.Linear(8, 16, bias=False).double()
    with pytest.raises(grit.GritError, match="bias_in"):
        model(batch)
    model = small_model().train()
    model.layers[1].float()
    with pytest.raises(RuntimeError):
        model(batch)


def test_nothing_is_kept_after_the_backward_pass(batch):
    model = small_model().train()
    out = model(batch).sum()
    (node,) = (each for each in graph_of(out) if "_Layers" in type(each).__name__)
    assert len(node.saved_tensors) > 0
    out.backward()
    with pytest.raises(RuntimeError, match="freed"):
        _ = node.saved_tensors


def graph_of(tensor):
    found, waiting = [], [tensor.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in found:
            found.append(node)
            waiting += [each for each, _ in node.next_functions]
    return found


def test_statistics_that_moved_meanwhile_are_noticed(batch):
    model = small_model().eval()
    out = model(batch).sum()
    model.train()(batch)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


def test_degrees_of_another_type(batch):
    model = small_model().train()
    other = dataclasses.replace(batch, log_degree=batch.log_degree.float())
    ours, theirs = training_step(model, other, together=True), training_step(model, other, together=False)
    torch.testing.assert_close(ours[0], theirs[0], rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(ours[0], training_step(model, batch, together=True)[0], rtol=1e-5, atol=1e-5)


def test_the_backward_pass_stays_with_the_form_of_the_forward_pass(batch):
    model = small_model().train()
    out = model(batch).sum()
    with kernels.use("plain"):
        out.backward()
    assert model.layers[0].node_out.weight.grad is not None


def test_single_precision(batch):
    """As far from the same model in double precision as one by one."""
    model = small_model(hidden_dim=64, num_heads=8, num_layers=4)
    exact = training_step(model, batch, together=True)
    batch = grit.PairBatch.from_data_list([some_graph(n, seed) for seed, n in enumerate((30, 7, 45))], walk_steps=4)
    errors = []
    for together in (True, False):
        step = training_step(copy.deepcopy(model).float(), batch, together=together)
        torch.testing.assert_close(step[0].double(), exact[0], rtol=1e-4, atol=1e-4)
        largest = max(grad.abs().max() for grad in exact[1].values() if grad is not None)
        errors.append(max((step[1][k] - g).abs().max() for k, g in exact[1].items() if g is not None) / largest)
    assert errors[0] < 2 * errors[1] + 1e-7


def test_backward_twice(batch):
    model = small_model().train()
    out = model(batch).sum()
    out.backward(retain_graph=True)
    once = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    out.backward()
    for name, p in model.named_parameters():
        if name in once:
            torch.testing.assert_close(p.grad, 2 * once[name])


def test_a_second_derivative_is_refused(batch):
    model = small_model().train()
    weight = model.layers[0].node_out.weight
    (grad,) = torch.autograd.grad(model(batch).sum(), [weight], create_graph=True)
    with pytest.raises(RuntimeError, match="differentiate"):
        torch.autograd.grad(grad.sum(), [weight])


def test_weights_changed_before_backward_are_noticed(batch):
    model = small_model().train()
    out = model(batch).sum()
    with torch.no_grad():
        model.layers[0].node_out.weight.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


def test_nan_goes_through(batch):
    model = small_model().train()
    with torch.no_grad():
        model.layers[0].attention.score[0, 0] = float("nan")
    assert model(batch).isnan().any()
