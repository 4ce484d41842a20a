"""GRIT, the Graph Inductive bias Transformer: the public names, loaded on first use.

Nothing heavy is imported here, so that ``grit --help`` and ``import grit`` stay fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from grit.version import VERSION

if TYPE_CHECKING:
    from grit.batches.pair_batch import PairBatch
    from grit.batches.spec import BatchSpec
    from grit.datasets.registry import DATASETS
    from grit.encodings import ENCODINGS
    from grit.encodings.add_rrwp import AddRRWP
    from grit.encodings.rrwp import rrwp
    from grit.errors import GritError
    from grit.graphs.packed import PackedGraphs
    from grit.graphs.pairs import Pairs, choose_pairs
    from grit.graphs.schema import Features, GraphSchema
    from grit.learning.losses import LOSSES
    from grit.learning.metrics import METRICS
    from grit.learning.optimizers import OPTIMIZERS
    from grit.learning.schedules import SCHEDULES
    from grit.models import MODELS
    from grit.models.grit import Grit
    from grit.models.statistics import STATISTICS
    from grit.nn.attention import ATTENTIONS
    from grit.nn.attention.grit import GritAttention
    from grit.nn.heads import HEADS
    from grit.nn.layer import GritLayer
    from grit.nn.norm import NORMS
    from grit.recipe.builder import build_batch, build_model
    from grit.recipe.load import load_recipe, recipes
    from grit.recipe.plugins import load_plugin
    from grit.recipe.reference_weights import load_reference_checkpoint
    from grit.training.estimators import GritClassifier, GritRegressor
    from grit.training.loggers import LOGGERS
    from grit.training.predictor import load
    from grit.training.train import train

__version__ = VERSION

_HOME = {
    "ATTENTIONS": "grit.nn.attention",
    "AddRRWP": "grit.encodings.add_rrwp",
    "BatchSpec": "grit.batches.spec",
    "DATASETS": "grit.datasets.registry",
    "ENCODINGS": "grit.encodings",
    "Features": "grit.graphs.schema",
    "GraphSchema": "grit.graphs.schema",
    "Grit": "grit.models.grit",
    "GritAttention": "grit.nn.attention.grit",
    "GritClassifier": "grit.training.estimators",
    "GritError": "grit.errors",
    "GritLayer": "grit.nn.layer",
    "GritRegressor": "grit.training.estimators",
    "HEADS": "grit.nn.heads",
    "LOGGERS": "grit.training.loggers",
    "LOSSES": "grit.learning.losses",
    "METRICS": "grit.learning.metrics",
    "MODELS": "grit.models",
    "NORMS": "grit.nn.norm",
    "OPTIMIZERS": "grit.learning.optimizers",
    "PackedGraphs": "grit.graphs.packed",
    "PairBatch": "grit.batches.pair_batch",
    "Pairs": "grit.graphs.pairs",
    "SCHEDULES": "grit.learning.schedules",
    "STATISTICS": "grit.models.statistics",
    "build_batch": "grit.recipe.builder",
    "build_model": "grit.recipe.builder",
    "choose_pairs": "grit.graphs.pairs",
    "load": "grit.training.predictor",
    "load_plugin": "grit.recipe.plugins",
    "load_recipe": "grit.recipe.load",
    "load_reference_checkpoint": "grit.recipe.reference_weights",
    "recipes": "grit.recipe.load",
    "rrwp": "grit.encodings.rrwp",
    "train": "grit.training.train",
}

__all__ = [
    "ATTENTIONS",
    "DATASETS",
    "ENCODINGS",
    "HEADS",
    "LOGGERS",
    "LOSSES",
    "METRICS",
    "MODELS",
    "NORMS",
    "OPTIMIZERS",
    "SCHEDULES",
    "STATISTICS",
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
    "load_plugin",
    "load_recipe",
    "load_reference_checkpoint",
    "recipes",
    "rrwp",
    "train",
]


# Packages that ``import grit`` makes available as attributes, such as ``grit.datasets.load``.
_ROOMS = (
    "batches",
    "datasets",
    "encodings",
    "graphs",
    "kernels",
    "learning",
    "models",
    "nn",
    "recipe",
    "testing",
    "training",
)


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"grit.{name}")
    if name not in __all__:
        raise AttributeError(f"module 'grit' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
