"""Models that read a `PairBatch`: GRIT and the systems it is compared with, one file each, in the table `MODELS`."""

from grit.models.grit import Grit, check_grit
from grit.models.kind import ModelKind
from grit.models.message_passing.cin import Cin, cin_structures
from grit.models.message_passing.crawl import Crawl, check_crawl
from grit.models.message_passing.delta_2 import Delta2Gnn, Delta2Lgnn
from grit.models.message_passing.dgn import Dgn, check_dgn
from grit.models.message_passing.gat import Gat, GatV2, check_gat
from grit.models.message_passing.gatedgcn import GatedGcn
from grit.models.message_passing.gatedgcn_lspe import GatedGcnLspe
from grit.models.message_passing.gcn import Gcn, GcnSymmetric
from grit.models.message_passing.gin import Gin
from grit.models.message_passing.gin_ak import GinAk, gin_ak_structures
from grit.models.message_passing.gine import Gine
from grit.models.message_passing.graphsage import GraphSage
from grit.models.message_passing.gsn import Gsn
from grit.models.message_passing.monet import MoNet
from grit.models.message_passing.ogb import GcnOgb, GcnVirtual, GinOgb, GinVirtual
from grit.models.message_passing.pna import Pna, check_pna
from grit.models.message_passing.signnet import SignNet
from grit.models.statistics import STATISTICS
from grit.models.transformers.egt import Egt, check_egt
from grit.models.transformers.gps import Gps, check_gps
from grit.models.transformers.graphormer import Graphormer, check_graphormer, graphormer_structures
from grit.models.transformers.graphormer_gd import GraphormerGd
from grit.models.transformers.graphormer_urpe import GraphormerUrpe
from grit.models.transformers.grpe import Grpe, check_grpe
from grit.models.transformers.san import San, check_san
from grit.models.transformers.sat import Sat, check_sat, sat_structures
from grit.models.transformers.tokengt import TokenGtLap, TokenGtOrf, check_tokengt
from grit.models.transformers.transformer import Transformer, check_transformer

MODELS: dict[str, ModelKind] = {
    "grit": ModelKind(Grit, check_grit, bound="GD-WL"),
    # Message passing.
    "cin": ModelKind(Cin, structures=cin_structures, levels=("graph",)),
    "crawl": ModelKind(Crawl, check_crawl, draws=True),
    "delta-2-gnn": ModelKind(Delta2Gnn, pairs=("all",)),
    "delta-2-lgnn": ModelKind(Delta2Lgnn, pairs=("all",)),
    "dgn": ModelKind(Dgn, check_dgn, encodings=("laplacian-unnormalised", "laplacian")),
    "gat": ModelKind(Gat, check_gat, bound="1-WL"),
    "gatedgcn": ModelKind(GatedGcn, bound="1-WL"),
    "gatedgcn-lspe": ModelKind(GatedGcnLspe, encodings=("rwse", "rrwp")),
    "gatv2": ModelKind(GatV2, check_gat, bound="1-WL"),
    "gcn": ModelKind(Gcn, bound="1-WL"),
    "gcn-ogb": ModelKind(GcnOgb, bound="1-WL"),
    "gcn-symmetric": ModelKind(GcnSymmetric, bound="1-WL"),
    "gcn-virtual": ModelKind(GcnVirtual, bound="1-WL"),
    "gin": ModelKind(Gin, bound="1-WL"),
    "gin-ak": ModelKind(GinAk, structures=gin_ak_structures),
    "gin-ogb": ModelKind(GinOgb, bound="1-WL"),
    "gin-virtual": ModelKind(GinVirtual, bound="1-WL"),
    "gine": ModelKind(Gine, bound="1-WL"),
    "graphsage": ModelKind(GraphSage, bound="1-WL"),
    "gsn": ModelKind(Gsn, encodings=("cycles",)),
    "monet": ModelKind(MoNet, bound="1-WL"),
    "pna": ModelKind(Pna, check_pna, bound="1-WL"),
    "signnet": ModelKind(SignNet, encodings=("laplacian", "laplacian-unnormalised")),
    # Transformers.
    "egt": ModelKind(Egt, check_egt, encodings=("svd-loops", "svd", "none")),
    "gps": ModelKind(Gps, check_gps),
    "graphormer": ModelKind(Graphormer, check_graphormer, encodings=("spd",), structures=graphormer_structures),
    "graphormer-gd": ModelKind(
        GraphormerGd, check_graphormer, encodings=("resistance",), structures=graphormer_structures
    ),
    "graphormer-urpe": ModelKind(
        GraphormerUrpe, check_graphormer, encodings=("spd",), structures=graphormer_structures
    ),
    "grpe": ModelKind(Grpe, check_grpe, encodings=("spd",)),
    "san": ModelKind(San, check_san, bound="1-WL"),
    "sat": ModelKind(Sat, check_sat, structures=sat_structures),
    "tokengt-lap": ModelKind(TokenGtLap, check_tokengt, encodings=("laplacian",)),
    "tokengt-orf": ModelKind(TokenGtOrf, check_tokengt, draws=True),
    "transformer": ModelKind(Transformer, check_transformer, bound="1-WL"),
}

__all__ = [
    "MODELS",
    "STATISTICS",
    "Cin",
    "Crawl",
    "Delta2Gnn",
    "Delta2Lgnn",
    "Dgn",
    "Egt",
    "Gat",
    "GatV2",
    "GatedGcn",
    "GatedGcnLspe",
    "Gcn",
    "GcnOgb",
    "GcnSymmetric",
    "GcnVirtual",
    "Gin",
    "GinAk",
    "GinOgb",
    "GinVirtual",
    "Gine",
    "Gps",
    "GraphSage",
    "Graphormer",
    "GraphormerGd",
    "GraphormerUrpe",
    "Grit",
    "Grpe",
    "Gsn",
    "MoNet",
    "ModelKind",
    "Pna",
    "San",
    "Sat",
    "SignNet",
    "TokenGtLap",
    "TokenGtOrf",
    "Transformer",
]
