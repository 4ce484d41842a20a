import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

import grit
from grit.datasets import DATASETS
from grit.graphs.schema import Features, GraphSchema
from grit.models import MODELS
from grit.nn.activation import ACTIVATIONS
from tests.graph_strategies import featured_graphs, permuted

pytestmark = pytest.mark.usefixtures("each_form")

NODE, EDGE = Features(kind="category", sizes=(5,)), Features(kind="category", sizes=(3,))
SMALL = {"walk_steps": 4, "num_layers": 2, "hidden_dim": 8, "num_heads": 2}


def small_model(level="graph", seed=0, **options):
    torch.manual_seed(seed)
    pooling = "sum" if level == "graph" else "none"
    schema = GraphSchema(node=NODE, edge=EDGE, level=level, num_outputs=2)
    model = grit.Grit(schema=schema, **{**SMALL, "pooling": pooling, **options}).double()
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm1d):
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2.0)
    return model


def batch_of(data_list, **options):
    return grit.PairBatch.from_data_list(data_list, walk_steps=4, dtype=torch.float64, **options)


@given(featured_graphs(), st.randoms())
@torch.no_grad()
def test_graph_predictions_do_not_depend_on_the_order_of_nodes(data, random):
    order = list(range(data.num_nodes))
    random.shuffle(order)
    permutation = torch.tensor(order)
    for options in ({}, {"norm": "layer"}, {"degree": "encoding"}, {"attention": "graphormer", "update_pairs": False}):
        model = small_model(**options).eval()
        torch.testing.assert_close(model(batch_of([permuted(data, permutation)])), model(batch_of([data])))
    model = small_model("node").eval()
    torch.testing.assert_close(model(batch_of([permuted(data, permutation)]))[permutation], model(batch_of([data])))


@given(st.lists(featured_graphs(), min_size=2, max_size=4), st.sampled_from(["all", "edges", "khop-2"]))
@torch.no_grad()
def test_a_batch_is_its_graphs_one_by_one(data_list, kind):
    for level in ("graph", "node"):
        model = small_model(level).eval()
        together = model(batch_of(data_list, pairs=kind))
        apart = torch.cat([model(batch_of([data], pairs=kind)) for data in data_list])
        torch.testing.assert_close(together, apart)


@given(featured_graphs(max_nodes=5))
@torch.no_grad()
def test_sparse_pairs_on_a_complete_graph_are_all_pairs(data):
    n = data.num_nodes
    data.edge_index = torch.stack([torch.arange(n).repeat_interleave(n), torch.arange(n).repeat(n)])
    data.edge_attr = torch.arange(n * n) % 3
    model = small_model().eval()
    torch.testing.assert_close(model(batch_of([data], pairs="edges")), model(batch_of([data])))


def test_the_last_pair_update_is_not_computed_but_counted():
    model = small_model()
    assert [layer.update_pairs for layer in model.layers] == [True, False]
    assert [layer.update_pairs for layer in small_model(update_pairs=False).layers] == [False, False]
    assert [layer.update_pairs for layer in small_model("edge").layers] == [True, True]
    assert model.num_parameters == small_model(update_pairs=False).num_parameters


@given(st.lists(featured_graphs(), min_size=2, max_size=3))
def test_gradients_reach_every_parameter_that_counts(data_list):
    model = small_model()
    model(batch_of(data_list)).square().sum().backward()
    unused = {name for name, parameter in model.named_parameters() if parameter.grad is None}
    assert unused == {f"layers.1.{part}.{what}" for part in ("pair_out", "pair_norm") for what in ("weight", "bias")}
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


def test_edge_level_predictions():
    data = Data(
        x=torch.tensor([[0], [1], [2]]),
        edge_index=torch.tensor([[0, 1], [1, 2]]),
        edge_attr=torch.tensor([1, 2]),
        edge_label_index=torch.tensor([[0, 2], [2, 1]]),
        edge_label=torch.tensor([1.0, 0.0]),
    )
    model = small_model("edge").eval()
    batch = batch_of([data, data])
    assert model(batch).shape == (4, 2)
    assert model.embed(batch).shape == (4, 8)
    torch.testing.assert_close(model(batch)[:2], model(batch)[2:])


def test_survives_deepcopy_and_state_dict():
    import copy

    model = small_model().eval()
    other = small_model(seed=1).eval()
    other.load_state_dict(model.state_dict())
    batch = batch_of(
        [Data(x=torch.tensor([[0]]), edge_index=torch.zeros(2, 0).long(), edge_attr=torch.zeros(0).long())]
    )
    assert torch.equal(model(batch), other(batch))
    assert torch.equal(model(batch), copy.deepcopy(model)(batch))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"encoding": "wl"}, "unknown encoding 'wl'"),
        ({"walk_steps": 0}, "walk_steps must be at least 1"),
        ({"num_layers": 0}, "num_layers and head_layers must be at least 1"),
        ({"head_layers": 0}, "num_layers and head_layers must be at least 1"),
        ({"degree": "log"}, "degree must be scaler, encoding or none, got 'log'"),
        ({"head": "no-such-head"}, "unknown head 'no-such-head'; there are halving, mlp"),
        ({"pooling": "max"}, "go with pooling sum or mean, got 'max'"),
        ({"num_heads": 5}, "hidden_dim 8 is not divisible by num_heads 5"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(grit.GritError, match=message):
        small_model(**options)


@pytest.mark.parametrize(
    ("given_", "name"),
    [(Data(edge_index=torch.zeros(2, 0).long(), num_nodes=2), "Data"), ([1], "list"), (None, "NoneType")],
)
def test_reads_a_pair_batch_and_nothing_else(given_, name):
    model = small_model()
    for call in (model, model.embed):
        with pytest.raises(grit.GritError, match=f"reads a PairBatch, got {name}.*PairBatch.from_data_list"):
            call(given_)


def test_options_reach_every_part():
    model = small_model(
        dropout=0.1, attention_dropout=0.4, clamp=2.0, activation="gelu", norm="layer", head="mlp", head_layers=4
    )
    for layer in model.layers:
        assert (layer.dropout, layer.attention.attention_dropout, layer.attention.clamp) == (0.1, 0.4, 2.0)
        assert layer.activation is ACTIVATIONS["gelu"]
        assert isinstance(layer.node_norm, torch.nn.LayerNorm)
    assert model.head.activation is ACTIVATIONS["gelu"]
    assert len(model.head.hidden) == 3


def test_compiled_without_a_break_is_the_same():
    """By backend `eager`, which traces the model, in one graph, without generating code."""
    torch._dynamo.reset()
    path = Data(
        x=torch.tensor([[0], [1], [2]]),
        edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]),
        edge_attr=torch.tensor([0, 0, 2, 2]),
    )
    edge = Data(x=torch.tensor([[4], [3]]), edge_index=torch.tensor([[0], [1]]), edge_attr=torch.tensor([1]))
    model = small_model().eval()
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    for data_list in ([path, edge], [edge, path, edge]):  # of other sizes the second time
        batch = batch_of(data_list)
        torch.testing.assert_close(compiled(batch), model(batch))
    gradients = []
    for forward in (compiled, model):
        model.zero_grad()
        forward(batch).square().sum().backward()
        gradients.append([parameter.grad for parameter in model.parameters() if parameter.grad is not None])
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("strict", [False, True])
@torch.no_grad()
def test_exported_on_a_pair_batch_is_the_same(strict):
    model = small_model().eval()
    path = Data(
        x=torch.tensor([[0], [1], [4]]), edge_index=torch.tensor([[0, 1], [1, 2]]), edge_attr=torch.tensor([0, 2])
    )
    batch = batch_of([path, path])
    program = torch.export.export(model, (batch,), strict=strict)
    torch.testing.assert_close(program.module()(batch), model(batch))
    other = batch_of([path.update({"x": path.x.flip(0)}), path])  # of the same sizes
    torch.testing.assert_close(program.module()(other), model(other))


@given(featured_graphs())
@torch.no_grad()
def test_called_with_other_weights(data):
    model, other, batch = small_model().eval(), small_model(seed=1).eval(), batch_of([data])
    got = torch.func.functional_call(model, other.state_dict(), (batch,))
    torch.testing.assert_close(got, other(batch))


def test_the_defaults_are_those_of_zinc():
    """Except for dropout, which a layer of one's own should not have unasked."""
    recipe = grit.load_recipe("zinc")
    options = {**recipe.model.options(), "attention_dropout": 0.0}
    schema = DATASETS["zinc"].schema
    default = {name: default for name, (_, default) in MODELS["grit"].parameters().items()}
    assert {name: default[name] for name in options} == options
    assert (default["encoding"], default["walk_steps"]) == (recipe.encoding.name, recipe.encoding.walk_steps)
    assert grit.Grit(schema=schema).num_parameters == 473_473
