"""The contract that every entry of MODELS keeps."""

import pytest
import torch

import grit
from grit.graphs.schema import Features, GraphSchema
from grit.models import MODELS
from grit.recipe.builder import build_model
from grit.recipe.config import Recipe
from tests.graph_strategies import permuted
from tests.training.small import small_graphs

SCHEMA = GraphSchema(
    node=Features(kind="category", sizes=(21,)), edge=Features(kind="category", sizes=(4,)), num_outputs=2
)


# What the last pair update of GRIT would write is read by nobody, as in the released model.
UNUSED = {"grit": ("layers.1.pair_out", "layers.1.pair_norm", "layers.1.attention.pair")}


def make(name, level="graph"):
    """A small model, as a recipe makes it; all encodings are none."""
    options = {"pooling": "none"} if level != "graph" and "pooling" in MODELS[name].parameters() else {}
    tree = {"dataset": "zinc", "encoding": {"name": "none"}, "model": {"name": name, "num_layers": 2, **options}}
    return build_model(Recipe.model_validate(tree), SCHEMA.model_copy(update={"level": level}))


@pytest.mark.parametrize("name", sorted(MODELS))
class TestContract:
    @pytest.mark.parametrize("level", ["graph", "node"])
    def test_shapes_and_gradients(self, name, level):
        batch = grit.PairBatch.from_data_list(small_graphs(5), encoding="none")
        model = make(name, level)
        predicted = model(batch)
        assert predicted.shape == (5 if level == "graph" else batch.num_nodes, 2)
        predicted.sum().backward()
        without = [parameter for parameter, value in model.named_parameters() if value.grad is None]
        assert [each for each in without if not each.startswith(UNUSED.get(name, ()))] == []

    def test_does_not_depend_on_the_order_of_nodes(self, name):
        graph = small_graphs(2)[1]
        model = make(name).double().eval()
        permutation = torch.arange(graph.num_nodes).flip(0)
        here, there = (
            model(grit.PairBatch.from_data_list([g], encoding="none", dtype=torch.float64))
            for g in (graph, permuted(graph, permutation))
        )
        torch.testing.assert_close(here, there)
