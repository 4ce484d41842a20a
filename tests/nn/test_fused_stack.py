"""Layers in the fused unit against the same layers in the plain form."""

import copy
import dataclasses

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

import grit
from grit import kernels
from grit.kernels.backend import DEVICES, FusedDevice
from grit.nn.can_fuse import why_not_fused
from grit.nn.layer import GritLayer
from tests.graph_strategies import featured_graphs
from tests.models.test_grit import batch_of, small_model

pytestmark = pytest.mark.skipif(kernels.status().active != "fused", reason=kernels.status().reason)


@pytest.fixture(autouse=True)
def _fused():
    with kernels.use("fused"):
        yield


def training_step(model, batch, *, form, seed=1, mode=True):
    """Predictions, gradients and buffers of a copy; which way was taken is checked."""
    model = copy.deepcopy(model).train(mode)
    torch.manual_seed(seed)
    with kernels.use(form):
        assert (model.why_plain(batch) is None) == (form == "fused"), model.why_plain(batch)
        out = model(batch)
    (out * torch.linspace(1, 2, out.numel(), dtype=out.dtype).view_as(out)).sum().backward()
    return out.detach(), {name: p.grad for name, p in model.named_parameters()}, dict(model.named_buffers())


def check(model, batch, **options):
    assert_same(
        training_step(model, batch, form="fused", **options), training_step(model, batch, form="plain", **options)
    )


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


def check_as_it_is(model, batch):
    """`check` without a change of mode, and whatever way the judge chooses."""
    results = []
    for form in ("fused", "plain"):
        copied = copy.deepcopy(model)
        torch.manual_seed(0)
        with kernels.use(form):
            out = copied(batch)
        out.square().sum().backward()
        results.append((out.detach(), {n: p.grad for n, p in copied.named_parameters()}, dict(copied.named_buffers())))
    assert_same(*results)


@given(
    st.lists(featured_graphs(), min_size=2, max_size=4).filter(lambda graphs: sum(g.num_nodes for g in graphs) > 2),
    st.sampled_from(["all", "edges"]),
    st.sampled_from([1, 2, 3]),
    st.sampled_from(["scaler", "none"]),
    st.sampled_from([(0.0, 0.0), (0.3, 0.0), (0.0, 0.4), (0.5, 0.5)]),
    st.sampled_from([5.0, 0.01, None]),
    st.sampled_from(["relu", "gelu"]),
    st.booleans(),
)
def test_fused_is_plain(data_list, pairs, num_layers, degree, dropouts, clamp, activation, mode):
    attention_dropout, dropout = dropouts
    model = small_model(
        num_layers=num_layers,
        degree=degree,
        attention_dropout=attention_dropout,
        dropout=dropout,
        clamp=clamp,
        activation=activation,
    )
    check(model, batch_of(data_list, pairs=pairs), mode=mode)


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
    check(model, batch)


def test_node_predictions(batch):
    model = small_model("node")
    check(model, batch)


def test_threads_do_not_matter(batch):
    results = []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            results.append(training_step(small_model(attention_dropout=0.2, dropout=0.1), batch, form="fused"))
    finally:
        torch.set_num_threads(1)
    torch.testing.assert_close(results[0], results[1], rtol=0, atol=0)


def test_edge_predictions_read_the_last_layers_pairs(batch):
    labelled = dataclasses.replace(batch.graphs, label_index=batch.graphs.edge_index[:, ::5], y=None)
    check(small_model("edge"), dataclasses.replace(batch, graphs=labelled))


def test_evaluation_without_gradients(batch):
    model = small_model(num_layers=3).eval()
    with torch.no_grad():
        fused = model(batch)
        with kernels.use("plain"):
            torch.testing.assert_close(fused, model(batch), rtol=1e-10, atol=1e-10)


def test_batch_statistics_without_gradients(batch):
    models = [small_model(num_layers=3, dropout=0.2).train() for _ in range(2)]
    for model, form in zip(models, ("fused", "plain"), strict=True):
        torch.manual_seed(0)
        with torch.no_grad(), kernels.use(form):
            model(batch)
    for ours, theirs in zip(models[0].buffers(), models[1].buffers(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


def freeze_some(model):
    model.layers[1].requires_grad_(False)
    model.stem.requires_grad_(False)


def freeze_from_the_start(model):
    model.stem.requires_grad_(False)
    model.layers[0].requires_grad_(False)


def other_momentum(model):
    model.layers[1].ffn_norm.momentum = 0.9
    model.layers[2].pair_norm.momentum = None


def other_eps_everywhere(model):
    for layer in model.layers:
        layer.pair_norm.eps = layer.node_norm.eps = layer.ffn_norm.eps = 0.5


def other_feed_forward_width_everywhere(model):
    for layer in model.layers:
        layer.ffn_in, layer.ffn_out = torch.nn.Linear(8, 4).double(), torch.nn.Linear(4, 8).double()


def no_statistics(model):
    for layer in model.layers:
        for name in ("pair_norm", "node_norm", "ffn_norm"):
            setattr(layer, name, type(layer.pair_norm)(8, track_running_stats=False).double())


def weights_not_contiguous(model):
    weight = model.layers[1].ffn_in.weight
    weight.data = weight.data.t().contiguous().t()


@pytest.mark.parametrize(
    "change",
    [
        freeze_some,
        freeze_from_the_start,
        other_momentum,
        other_eps_everywhere,
        other_feed_forward_width_everywhere,
        no_statistics,
        weights_not_contiguous,
    ],
)
@pytest.mark.parametrize("mode", [True, False])
def test_changed_models_are_fused_all_the_same(batch, change, mode):
    model = small_model(num_layers=3, attention_dropout=0.2)
    change(model)
    check(model, batch, mode=mode)


def test_statistics_frozen_while_dropout_is_on(batch):
    model = small_model(num_layers=3, attention_dropout=0.2, dropout=0.1).train()
    for layer in model.layers:
        for norm in (layer.pair_norm, layer.node_norm, layer.ffn_norm):
            norm.eval()
    check_as_it_is(model, batch)


def other_eps(model):
    model.layers[1].pair_norm.eps = 0.5


def other_dropout(model):
    model.layers[1].dropout = 0.25


def attention_in_evaluation(model):
    model.layers[1].attention.eval()


def a_norm_in_evaluation(model):
    model.layers[1].node_norm.eval()


def other_feed_forward_width(model):
    model.layers[1].ffn_in, model.layers[1].ffn_out = torch.nn.Linear(8, 4).double(), torch.nn.Linear(4, 8).double()


def missing_bias(model):
    model.layers[1].ffn_in = torch.nn.Linear(8, 16, bias=False).double()


def another_bias(model):
    model.layers[1].attention.key = torch.nn.Linear(8, 8).double()


def shared_last_layer(model):
    model.layers[0] = model.layers[2]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (other_eps, "layer 1 has a norm of another eps or mode"),
        (other_dropout, "layer 1 has other settings than layer 0"),
        (attention_in_evaluation, "layer 1 has other settings than layer 0"),
        (a_norm_in_evaluation, "layer 1 has a norm of another eps or mode"),
        (other_feed_forward_width, "layer 1 has other settings than layer 0"),
        (missing_bias, "layer 1 has no ffn_in_bias"),
        (another_bias, "layer 1 has a key_bias"),
        (shared_last_layer, "layer 0 does not rewrite pairs, and is not the last"),
    ],
)
def test_changed_models_run_as_the_plain_form_has_it(batch, change, reason):
    """Each layer for itself, fused where that is possible."""
    model = small_model(num_layers=3, attention_dropout=0.2).train()
    change(model)
    assert model.why_plain(batch) == reason
    check_as_it_is(model, batch)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"norm": "layer"}, "is a LayerNorm"),
        ({"update_pairs": False}, "does not rewrite pairs"),
        ({"attention": "grit-linear"}, "is a GritLinearAttention"),
        ({"attention": "graphormer", "update_pairs": False}, "is a GraphormerAttention"),
    ],
)
def test_other_models_run_plain(batch, options, reason):
    model = small_model(**options).train()
    assert reason in model.why_plain(batch)
    model(batch).sum().backward()


def test_no_layers(batch):
    model = small_model()
    model.layers = torch.nn.ModuleList()
    model(batch).sum().backward()


def test_a_layer_shared_in_the_middle(batch):
    model = small_model(num_layers=4)
    model.layers[1] = model.layers[0]
    check(model, batch)


@pytest.mark.parametrize("change", [lambda t: t.float(), lambda t: torch.cat([t, t])])
def test_statistics_of_another_type_or_shape(batch, change):
    model = small_model().eval()
    model.layers[1].ffn_norm.running_var = change(model.layers[1].ffn_norm.running_var)
    assert model.why_plain(batch) == "layer 1 has running statistics of another shape or type"


def test_pairs_of_another_width_are_an_error(batch):
    layer = small_model().layers[0]
    with pytest.raises(RuntimeError):
        layer(
            torch.randn(batch.num_nodes, 8).double(),
            torch.randn(batch.num_pairs, 6).double(),
            batch.pairs,
            batch.log_degree,
        )


def test_other_types_are_errors(batch):
    model = small_model().train()
    model.layers[1].float()
    assert "float32" in model.why_plain(batch)
    with pytest.raises(RuntimeError):
        model(batch)


def test_nothing_is_kept_after_the_backward_pass(batch):
    model = small_model().train()
    out = model(batch).sum()
    (node,) = (each for each in graph_of(out) if "layer_stack" in type(each).__name__)
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
    ours = training_step(model, other, form="fused")
    torch.testing.assert_close(ours[0], training_step(model, other, form="plain")[0], rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(ours[0], training_step(model, batch, form="fused")[0], rtol=1e-5, atol=1e-5)


def test_the_backward_pass_stays_with_the_form_of_the_forward_pass(batch):
    model = small_model().train()
    out = model(batch).sum()
    with kernels.use("plain"):
        out.backward()
    assert model.layers[0].node_out.weight.grad is not None


def test_single_precision(batch):
    """As far from the same model in double precision as the plain form."""
    model = small_model(hidden_dim=64, num_heads=8, num_layers=4)
    exact = training_step(model, batch, form="fused")
    batch = grit.PairBatch.from_data_list([some_graph(n, seed) for seed, n in enumerate((30, 7, 45))], walk_steps=4)
    errors = []
    for form in ("fused", "plain"):
        step = training_step(copy.deepcopy(model).float(), batch, form=form)
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


def test_a_device_joins_by_its_entry(monkeypatch):
    """Tensors without values, whose kernels compute shapes alone, stand for another device."""
    layer = GritLayer(hidden_dim=8, num_heads=2).to("meta")
    given = torch.zeros(3, 8, device="meta"), torch.zeros(9, 8, device="meta"), torch.zeros(3, device="meta")
    assert why_not_fused([layer], *given) == "x is on meta; the fused unit is for cpu"
    monkeypatch.setitem(DEVICES, "meta", FusedDevice((torch.float32,), lambda: True))
    assert why_not_fused([layer], *given) is None
    assert why_not_fused([layer], given[0], torch.zeros(9, 8), given[2]) == "pair is on cpu and x on meta"
    assert "fused unit is for float32" in why_not_fused([layer], *(each.double() for each in given))
