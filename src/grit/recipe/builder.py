"""From a recipe to a model: the one place in ``nn`` that sees the configuration."""

from collections.abc import Sequence

import torch
from torch import nn
from torch_geometric.data import Data

from grit.batches.pair_batch import PairBatch
from grit.datasets import load_schema
from grit.graphs.schema import GraphSchema
from grit.models import BASELINES
from grit.models.grit import Grit
from grit.recipe.config import Recipe


def build_batch(recipe: Recipe, data_list: Sequence[Data]) -> PairBatch:
    """A batch of PyG graphs as a recipe's model reads it: its encoding, its walk_steps, its pairs."""
    return PairBatch.from_data_list(data_list, **vars(recipe.batch_spec()))


def build_network(recipe: Recipe, schema: GraphSchema) -> nn.Module:
    """What a recipe trains: GRIT, or the baseline that it names."""
    if recipe.baseline is None:
        return build_model(recipe, schema)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.train.seed)
        return BASELINES[recipe.baseline](schema)


def build_model(recipe: Recipe, schema: GraphSchema | None = None) -> Grit:
    """GRIT for a recipe.

    The weights depend on ``recipe.train.seed`` alone; torch's global random state is left as it was.

    Args:
        recipe: From `grit.load_recipe`.
        schema: Features and targets of the data; those of ``recipe.dataset`` if not given.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.train.seed)
        return Grit(
            schema=load_schema(recipe.dataset) if schema is None else schema,
            encoding=recipe.encoding.name,
            walk_steps=recipe.encoding.walk_steps,
            **recipe.model.model_dump(exclude={"pairs"}),
        )
