"""Models that read a `PairBatch`: GRIT and the systems it is compared with, one file each, in the table `MODELS`."""

from grit.models.grit import Grit, check_grit
from grit.models.kind import ModelKind
from grit.models.message_passing.cin import Cin, cin_structures
from grit.models.message_passing.crawl import Crawl, check_crawl
from grit.models.message_passing.gin_ak import GinAk, gin_ak_structures
from grit.models.message_passing.gine import Gine
from grit.models.message_passing.gsn import Gsn
from grit.models.statistics import STATISTICS
from grit.models.transformers.gps import Gps, check_gps
from grit.models.transformers.sat import Sat, check_sat, sat_structures

MODELS: dict[str, ModelKind] = {
    "grit": ModelKind(Grit, check_grit, levels=("graph", "node", "edge")),
    "cin": ModelKind(Cin, structures=cin_structures, levels=("graph",)),
    "crawl": ModelKind(Crawl, check_crawl, draws=True),
    "gin-ak": ModelKind(GinAk, structures=gin_ak_structures),
    "gine": ModelKind(Gine),
    "gsn": ModelKind(Gsn, encodings=("cycles",)),
    "gps": ModelKind(Gps, check_gps),
    "sat": ModelKind(Sat, check_sat, structures=sat_structures),
}

__all__ = ["MODELS", "STATISTICS", "Cin", "Crawl", "GinAk", "Gine", "Gps", "Grit", "Gsn", "ModelKind", "Sat"]
