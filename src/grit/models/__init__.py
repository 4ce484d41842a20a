"""Models that read a `PairBatch`: GRIT and the systems it is compared with, one file each, in the table `MODELS`."""

from grit.models.grit import Grit, check_grit
from grit.models.kind import ModelKind
from grit.models.message_passing.gine import Gine
from grit.models.statistics import STATISTICS
from grit.models.transformers.gps import Gps, check_gps
from grit.models.transformers.graphormer import Graphormer, check_graphormer, graphormer_structures
from grit.models.transformers.graphormer_gd import GraphormerGd
from grit.models.transformers.graphormer_urpe import GraphormerUrpe
from grit.models.transformers.san import San, check_san
from grit.models.transformers.transformer import Transformer, check_transformer

MODELS: dict[str, ModelKind] = {
    "grit": ModelKind(Grit, check_grit),
    "gine": ModelKind(Gine),
    "gps": ModelKind(Gps, check_gps),
    "graphormer": ModelKind(Graphormer, check_graphormer, encodings=("spd",), structures=graphormer_structures),
    "graphormer-gd": ModelKind(
        GraphormerGd, check_graphormer, encodings=("resistance",), structures=graphormer_structures
    ),
    "graphormer-urpe": ModelKind(
        GraphormerUrpe, check_graphormer, encodings=("spd",), structures=graphormer_structures
    ),
    "san": ModelKind(San, check_san),
    "transformer": ModelKind(Transformer, check_transformer),
}

__all__ = [
    "MODELS",
    "STATISTICS",
    "Gine",
    "Gps",
    "Graphormer",
    "GraphormerGd",
    "GraphormerUrpe",
    "Grit",
    "ModelKind",
    "San",
    "Transformer",
]
