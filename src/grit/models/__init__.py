"""Models that read a `PairBatch`: GRIT and the systems it is compared with, one file each, in the table `MODELS`."""

from grit.models.grit import Grit, check_grit
from grit.models.kind import ModelKind
from grit.models.message_passing.dgn import Dgn, check_dgn
from grit.models.message_passing.gatedgcn import GatedGcn
from grit.models.message_passing.gatedgcn_lspe import GatedGcnLspe
from grit.models.message_passing.gine import Gine
from grit.models.message_passing.signnet import SignNet
from grit.models.statistics import STATISTICS
from grit.models.transformers.gps import Gps, check_gps

MODELS: dict[str, ModelKind] = {
    "grit": ModelKind(Grit, check_grit),
    "dgn": ModelKind(Dgn, check_dgn, encodings=("laplacian-unnormalised", "laplacian")),
    "gatedgcn": ModelKind(GatedGcn),
    "gatedgcn-lspe": ModelKind(GatedGcnLspe, encodings=("rwse", "rrwp")),
    "gine": ModelKind(Gine),
    "signnet": ModelKind(SignNet, encodings=("laplacian", "laplacian-unnormalised")),
    "gps": ModelKind(Gps, check_gps),
}

__all__ = ["MODELS", "STATISTICS", "Dgn", "GatedGcn", "GatedGcnLspe", "Gine", "Gps", "Grit", "ModelKind", "SignNet"]
