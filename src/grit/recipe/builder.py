"""From a recipe to a model, its batches and its optimizer."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.optim import Optimizer

from grit.batches.pair_batch import PairBatch
from grit.datasets import load_schema
from grit.errors import GritError
from grit.graphs.schema import GraphSchema
from grit.graphs.store import GraphStore
from grit.learning.optimizers import OPTIMIZERS
from grit.models import MODELS, STATISTICS
from grit.nn.graph_features import check_reads_features
from grit.recipe.config import Recipe, TrainConfig
from grit.recipe.model_config import wanted_statistics

if TYPE_CHECKING:
    from torch_geometric.data import Data


def build_batch(recipe: Recipe, data_list: Sequence["Data"]) -> PairBatch:
    """A batch of PyG graphs as a recipe's model reads it: its encoding, its walk_steps, its pairs."""
    return PairBatch.from_data_list(data_list, **vars(recipe.batch_spec()))


def build_model(
    recipe: Recipe, schema: GraphSchema | None = None, *, statistics: Mapping[str, Any] | None = None
) -> nn.Module:
    """The model of a recipe: `grit.Grit` unless it names another.

    The weights depend on ``recipe.train.seed`` alone; torch's global random state is left as it was.

    Args:
        recipe: From `grit.load_recipe`.
        schema: Features and targets of the data; those of ``recipe.dataset`` if not given.
        statistics: Of the training set, where the model asks for some (`training_statistics`).
    """
    kind = MODELS[recipe.model.name]
    schema = load_schema(recipe.dataset) if schema is None else schema
    kind.check_level(recipe.model.name, schema.level)
    given = {
        "schema": schema,
        "encoding": recipe.encoding.name,
        "walk_steps": recipe.encoding.walk_steps,
        **(statistics or {}),
    }
    wanted = kind.parameters()
    missing = [name for name in wanted_statistics(recipe.model.name) if name not in given]
    if missing:
        raise GritError(
            f"the model {recipe.model.name!r} needs {', '.join(missing)} of its training set; pass "
            "statistics=grit.recipe.builder.training_statistics(recipe, store)."
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.train.seed)
        model = kind.build(**{name: given[name] for name in given if name in wanted}, **recipe.model.options())
    check_reads_features(model, recipe.model.name, schema)
    return model


def training_statistics(recipe: Recipe, store: GraphStore) -> dict[str, Any]:
    """What the model of a recipe asks for of its training set, by name; empty for most models."""
    members = store.split("train")
    return {name: STATISTICS[name](store, members) for name in wanted_statistics(recipe.model.name)}


def build_optimizer(model: nn.Module, config: TrainConfig) -> Optimizer:
    """The optimizer of a recipe over all parameters of its model."""
    return OPTIMIZERS[config.optimizer](list(model.parameters()), config.learning_rate(0), config.weight_decay)
