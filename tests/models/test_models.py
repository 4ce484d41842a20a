"""Every entry of MODELS keeps the rules of the table (`grit.testing.check_model`), on graphs of every awkward kind."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from grit.datasets.own.graph_lists import from_pyg
from grit.graphs.schema import Features, GraphSchema
from grit.models import MODELS
from grit.recipe.builder import build_batch, build_model, training_statistics
from grit.recipe.config import Recipe
from grit.testing import check_model
from tests.graph_strategies import featured_graphs
from tests.training.small import small_graphs

# What the last layer would write to pairs or edges is read by nobody. The published counts have these parameters.
UNREAD = {
    "grit": ("layers.1.pair_out", "layers.1.pair_norm", "layers.1.attention.pair"),
    "gatedgcn": ("layers.1.edge_norm",),
    "gatedgcn-lspe": ("layers.1.edge_norm",),
}
NUMBERS = GraphSchema(node=Features(kind="numeric", sizes=(2,)), edge=Features(kind="none"), num_outputs=3)
# Hundreds of draws are compared: walks are shorter, and the model narrower.
SMALLER = {"crawl": {"hidden_dim": 8, "walk_length": 6, "window": 3}}


def two_layers(name):
    layers = {"num_layers": 2} if "num_layers" in MODELS[name].parameters() else {}
    return layers | SMALLER.get(name, {})


@pytest.mark.parametrize("name", sorted(MODELS))
class TestContract:
    def test_the_rules_on_the_fixed_graphs(self, name):
        for encoding in MODELS[name].encodings or ("none", "rrwp"):
            check_model(name, encoding=encoding, options=two_layers(name), unread=UNREAD.get(name, ()))

    def test_the_rules_for_other_features(self, name):
        check_model(name, schema=NUMBERS, options=two_layers(name), unread=UNREAD.get(name, ()))

    @settings(max_examples=5)
    @given(data_list=st.lists(featured_graphs(max_nodes=5), min_size=2, max_size=4))
    def test_the_rules(self, name, data_list):
        check_model(name, graphs=data_list, options=two_layers(name), unread=UNREAD.get(name, ()))

    @pytest.mark.parametrize("level", ["graph", "node"])
    def test_it_is_what_a_recipe_builds(self, name, level):
        options = {"pooling": "none"} if level == "node" and "pooling" in MODELS[name].parameters() else {}
        kind = MODELS[name]
        if level not in kind.levels:
            pytest.skip(f"it predicts for {kind.levels[0]}s only")
        encoding = (kind.encodings or ("none",))[0]
        pairs = (kind.pairs or ("all",))[0].replace("khop", "khop-2")
        tree = {
            "dataset": "zinc",
            "encoding": {"name": encoding, "walk_steps": 4},
            "model": {"name": name, "pairs": pairs, **two_layers(name), **options},
        }
        schema = GraphSchema(
            node=Features(kind="category", sizes=(21,)),
            edge=Features(kind="category", sizes=(4,)),
            level=level,
            num_outputs=2,
        )
        recipe = Recipe.model_validate(tree)
        store = from_pyg(small_graphs(5), splits={"train": range(5)})
        model = build_model(recipe, schema, statistics=training_statistics(recipe, store))
        batch = build_batch(recipe, small_graphs(5))
        predicted = model(batch)
        assert predicted.shape == (5 if level == "graph" else batch.num_nodes, 2)
        assert torch.isfinite(predicted).all()
