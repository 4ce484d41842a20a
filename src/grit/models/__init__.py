"""Models that read a `PairBatch`: GRIT and the systems it is compared with, one file each, in the table `MODELS`."""

from grit.models.grit import Grit, check_grit
from grit.models.kind import ModelKind
from grit.models.message_passing.delta_2 import Delta2Gnn, Delta2Lgnn
from grit.models.message_passing.gine import Gine
from grit.models.statistics import STATISTICS
from grit.models.transformers.egt import Egt, check_egt
from grit.models.transformers.gps import Gps, check_gps
from grit.models.transformers.grpe import Grpe, check_grpe
from grit.models.transformers.tokengt import TokenGtLap, TokenGtOrf, check_tokengt

MODELS: dict[str, ModelKind] = {
    "grit": ModelKind(Grit, check_grit),
    "delta-2-gnn": ModelKind(Delta2Gnn, pairs=("all",)),
    "delta-2-lgnn": ModelKind(Delta2Lgnn, pairs=("all",)),
    "gine": ModelKind(Gine),
    "egt": ModelKind(Egt, check_egt, encodings=("svd-loops", "svd", "none")),
    "gps": ModelKind(Gps, check_gps),
    "grpe": ModelKind(Grpe, check_grpe, encodings=("spd",)),
    "tokengt-lap": ModelKind(TokenGtLap, check_tokengt, encodings=("laplacian",)),
    "tokengt-orf": ModelKind(TokenGtOrf, check_tokengt, draws=True),
}

__all__ = [
    "MODELS",
    "STATISTICS",
    "Delta2Gnn",
    "Delta2Lgnn",
    "Egt",
    "Gine",
    "Gps",
    "Grit",
    "Grpe",
    "ModelKind",
    "TokenGtLap",
    "TokenGtOrf",
]
