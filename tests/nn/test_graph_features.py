"""Numbers of each graph reach every model before its head, in units of their spread in the training set."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import grit
from grit.batches.pair_batch import PairBatch
from grit.datasets import from_pyg
from grit.errors import GritError
from grit.graphs.schema import Features, GraphSchema
from grit.models import MODELS
from grit.models.kind import ModelKind
from grit.nn.graph_features import LARGEST, JoinFeatures, feature_moments, fit_features
from grit.recipe.builder import build_batch, build_model, training_statistics
from grit.recipe.config import Recipe
from grit.testing.graphs import awkward_graphs, with_features
from tests.graph_strategies import featured_graphs
from tests.training.small import small_graphs

SCHEMA = GraphSchema(
    node=Features(kind="category", sizes=(5,)), edge=Features(kind="category", sizes=(3,)), graph_features=3
)
NAN = float("nan")


def batch_of(values):
    """Graphs of one node that carry these numbers."""
    values = torch.tensor(values)
    graphs = with_features(awkward_graphs()[:1] * len(values), SCHEMA)
    for graph, row in zip(graphs, values, strict=True):
        graph.graph_attr = row[None]
    return PairBatch.from_data_list(graphs, 3)


def store_of(values, train):
    graphs = small_graphs(len(values))
    for graph, row in zip(graphs, values, strict=True):
        graph.graph_attr = torch.tensor([row])
    return from_pyg(graphs, splits={"train": train})


class TestJoin:
    def test_by_hand(self):
        join = JoinFeatures(SCHEMA, 2)
        join.mean.copy_(torch.tensor([1.0, 2.0, 3.0]))
        join.scale.copy_(torch.tensor([2.0, 0.0, 0.5]))
        with torch.no_grad():
            join.hidden.weight.copy_(torch.tensor([[1.0, 1, 1], [-1, 0, 0]]))
            join.hidden.bias.copy_(torch.tensor([0.5, 0.0]))
            join.out.weight.copy_(torch.tensor([[1.0, 0], [0, -3]]))
            join.out.bias.copy_(torch.tensor([0.0, 7.0]))
        rows = torch.tensor([[1.0, 1.0], [0.0, 2.0], [0.0, 0.0]])
        # z: the first number in units of 2, the second constant in training, the third in units of 1/2, missing ones 0.
        batch = batch_of([[5.0, 9.0, 3.5], [NAN, NAN, 2.5], [-99.0, 0.0, 99.0]])
        wanted = [[1 + (2 + 1 + 0.5), 1 + 7], [0.0, 2 + 7], [0.5, -3 * LARGEST + 7]]
        assert join(rows, batch).tolist() == wanted

    def test_without_numbers_there_is_nothing(self):
        plain = JoinFeatures(SCHEMA.model_copy(update={"graph_features": 0}), 2)
        assert not plain.state_dict()
        rows, batch = torch.randn(1, 2), PairBatch.from_data_list(awkward_graphs()[:1], 3)
        assert plain(rows, batch) is rows
        with pytest.raises(GritError, match=r"reads 0 numbers of each graph \(graph_attr\), the batch has 3"):
            plain(rows, batch_of([[1.0, 2.0, 3.0]]))

    def test_a_batch_without_them_is_refused(self):
        with pytest.raises(GritError, match="reads 3 numbers of each graph .* the batch has 0"):
            JoinFeatures(SCHEMA, 2)(torch.randn(1, 2), PairBatch.from_data_list(awkward_graphs()[:1], 3))


class TestMoments:
    def test_of_the_training_graphs_alone_and_of_what_is_known(self):
        store = store_of([[1.0, NAN, 5.0], [3.0, NAN, 5.0], [NAN, NAN, 5.0], [99.0, 1.0, 7.0]], train=range(3))
        mean, scale = feature_moments(store, store.split("train"))
        assert mean.tolist() == [2.0, 0.0, 5.0]
        assert scale.tolist() == [1.0, 0.0, 0.0]

    def test_a_constant_is_found_whatever_its_size(self):
        store = store_of([[0.1, 1e6, 123.456]] * 7, train=range(7))
        assert feature_moments(store, store.split("train"))[1].tolist() == [0.0, 0.0, 0.0]

    @settings(max_examples=20)
    @given(st.lists(st.lists(st.floats(-100, 100, width=32), min_size=3, max_size=3), min_size=2, max_size=20))
    def test_as_numpy_has_them(self, values):
        store = store_of(values, train=range(len(values)))
        mean, scale = feature_moments(store, store.split("train"))
        np.testing.assert_allclose(mean, np.mean(values, axis=0), atol=1e-9)
        np.testing.assert_allclose(scale, np.std(values, axis=0), atol=1e-4)

    def test_a_model_is_given_them_with_its_weights(self):
        store = store_of([[float(k), 0.0, -float(k)] for k in range(5)], train=range(5))
        model = grit.Grit(schema=store.schema, num_layers=1, hidden_dim=8, num_heads=2, walk_steps=3)
        fit_features(model, store)
        state = model.state_dict()
        assert state["joined.mean"].tolist() == [2.0, 0.0, -2.0]
        assert state["joined.scale"].tolist() == pytest.approx([2**0.5, 0.0, 2**0.5])


def recipe_for(name):
    kind = MODELS[name]
    layers = {"num_layers": 2} if "num_layers" in kind.parameters() else {}
    tree = {
        "dataset": "zinc",
        "encoding": {"name": (kind.encodings or ("none",))[0], "walk_steps": 4},
        "model": {"name": name, "pairs": (kind.pairs or ("all",))[0].replace("khop", "khop-2"), **layers},
    }
    return Recipe.model_validate(tree)


def built(name, graphs, schema=SCHEMA):
    recipe = recipe_for(name)
    for graph in graphs:
        graph.y = torch.tensor([0.0])
    store = from_pyg(graphs, splits={"train": range(len(graphs))})
    return recipe, build_model(recipe, schema, statistics=training_statistics(recipe, store)).eval()


@pytest.mark.parametrize("name", sorted(MODELS))
class TestEveryModel:
    @settings(max_examples=3)
    @given(st.lists(featured_graphs(max_nodes=5), min_size=2, max_size=3), st.integers(0, 1))
    def test_reads_the_numbers_of_each_graph(self, name, graphs, changed):
        """And those of another graph change nothing."""
        graphs = with_features(graphs, SCHEMA)
        recipe, model = built(name, graphs)

        def predicted():
            torch.manual_seed(0)  # some draw
            with torch.no_grad():
                return model(build_batch(recipe, graphs))

        joins = [module for module in model.modules() if isinstance(module, JoinFeatures)]
        assert joins
        for join in joins:  # so that no ReLU is in the way
            join.hidden.weight.data.fill_(1.0)
            join.hidden.bias.data.fill_(100.0)
        before = predicted()
        graphs[changed].graph_attr = graphs[changed].graph_attr + 2.0
        after = predicted()
        same = torch.isclose(before, after, atol=1e-6, rtol=1e-6).all(1)
        assert not same[changed]
        assert same[1 - changed]

    def test_has_no_new_weights_without_them(self, name):
        _, model = built(name, with_features(awkward_graphs(), SCHEMA), SCHEMA.model_copy(update={"graph_features": 0}))
        assert not [key for key in model.state_dict() if "joined" in key]


def test_the_fused_layers_and_the_plain_ones_agree():
    graphs = with_features(awkward_graphs(), SCHEMA)
    recipe, model = built("grit", graphs)
    batch = build_batch(recipe, graphs)
    with torch.no_grad():
        fused = model(batch)
        with grit.kernels.use("plain"):
            plain = model(batch)
    torch.testing.assert_close(fused, plain, atol=1e-5, rtol=1e-5)


def test_a_model_that_would_ignore_them_is_refused(monkeypatch):
    class Deaf(nn.Module):
        def __init__(self, schema: GraphSchema) -> None:
            super().__init__()

    monkeypatch.setitem(MODELS, "deaf", ModelKind(Deaf))
    recipe = Recipe.model_validate({"dataset": "zinc", "model": {"name": "deaf"}})
    build_model(recipe, SCHEMA.model_copy(update={"graph_features": 0}))
    with pytest.raises(GritError, match="3 numbers of their own .* which the model 'deaf' does not read"):
        build_model(recipe, SCHEMA)
