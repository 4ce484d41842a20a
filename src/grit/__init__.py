"""GRIT, the Graph Inductive bias Transformer: the public names, loaded on first use.

Nothing heavy is imported here, so that ``grit --help`` and ``import grit`` stay fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from grit.version import VERSION

if TYPE_CHECKING:
    from grit.batches.pair_batch import PairBatch
    from grit.batches.spec import BatchSpec
    from grit.encodings.rrwp import AddRRWP, rrwp
    from grit.errors import GritError
    from grit.graphs.packed import PackedGraphs
    from grit.graphs.pairs import Pairs, choose_pairs
    from grit.graphs.schema import Features, GraphSchema
    from grit.models.grit import Grit
    from grit.nn.attention.grit import GritAttention
    from grit.nn.layer import GritLayer
    from grit.recipe.builder import build_batch, build_model
    from grit.recipe.load import load_recipe, recipes
    from grit.recipe.reference_weights import load_reference_checkpoint
    from grit.training.estimators import GritClassifier, GritRegressor
    from grit.training.predictor import load
    from grit.training.train import train

__version__ = VERSION

_HOME = {
    "AddRRWP": "grit.encodings.rrwp",
    "Features": "grit.graphs.schema",
    "GraphSchema": "grit.graphs.schema",
    "Grit": "grit.models.grit",
    "GritAttention": "grit.nn.attention.grit",
    "GritClassifier": "grit.training.estimators",
    "GritError": "grit.errors",
    "GritLayer": "grit.nn.layer",
    "GritRegressor": "grit.training.estimators",
    "PackedGraphs": "grit.graphs.packed",
    "PairBatch": "grit.batches.pair_batch",
    "Pairs": "grit.graphs.pairs",
    "BatchSpec": "grit.batches.spec",
    "build_batch": "grit.recipe.builder",
    "build_model": "grit.recipe.builder",
    "choose_pairs": "grit.graphs.pairs",
    "load": "grit.training.predictor",
    "load_recipe": "grit.recipe.load",
    "load_reference_checkpoint": "grit.recipe.reference_weights",
    "recipes": "grit.recipe.load",
    "rrwp": "grit.encodings.rrwp",
    "train": "grit.training.train",
}

__all__ = [
    "AddRRWP",
    "BatchSpec",
    "Features",
    "GraphSchema",
    "Grit",
    "GritAttention",
    "GritClassifier",
    "GritError",
    "GritLayer",
    "GritRegressor",
    "PackedGraphs",
    "PairBatch",
    "Pairs",
    "build_batch",
    "build_model",
    "choose_pairs",
    "load",
    "load_recipe",
    "load_reference_checkpoint",
    "recipes",
    "rrwp",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'grit' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
