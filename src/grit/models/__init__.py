"""Models that read a `PairBatch`: GRIT and the systems it is compared with, one file each, in the table `MODELS`."""

from grit.models.grit import Grit, check_grit
from grit.models.kind import ModelKind
from grit.models.message_passing.gat import Gat, GatV2, check_gat
from grit.models.message_passing.gcn import Gcn, GcnSymmetric
from grit.models.message_passing.gin import Gin
from grit.models.message_passing.gine import Gine
from grit.models.message_passing.graphsage import GraphSage
from grit.models.message_passing.monet import MoNet
from grit.models.message_passing.ogb import GcnOgb, GcnVirtual, GinOgb, GinVirtual
from grit.models.message_passing.pna import Pna, check_pna
from grit.models.statistics import STATISTICS
from grit.models.transformers.gps import Gps, check_gps
from grit.models.transformers.graphormer import Graphormer, check_graphormer, graphormer_structures
from grit.models.transformers.graphormer_gd import GraphormerGd
from grit.models.transformers.graphormer_urpe import GraphormerUrpe
from grit.models.transformers.san import San, check_san
from grit.models.transformers.transformer import Transformer, check_transformer

MODELS: dict[str, ModelKind] = {
    "grit": ModelKind(Grit, check_grit, bound="GD-WL"),
    # Message passing.
    "gat": ModelKind(Gat, check_gat, bound="1-WL"),
    "gatv2": ModelKind(GatV2, check_gat, bound="1-WL"),
    "gcn": ModelKind(Gcn, bound="1-WL"),
    "gcn-ogb": ModelKind(GcnOgb, bound="1-WL"),
    "gcn-symmetric": ModelKind(GcnSymmetric, bound="1-WL"),
    "gcn-virtual": ModelKind(GcnVirtual, bound="1-WL"),
    "gin": ModelKind(Gin, bound="1-WL"),
    "gin-ogb": ModelKind(GinOgb, bound="1-WL"),
    "gin-virtual": ModelKind(GinVirtual, bound="1-WL"),
    "gine": ModelKind(Gine, bound="1-WL"),
    "graphsage": ModelKind(GraphSage, bound="1-WL"),
    "monet": ModelKind(MoNet, bound="1-WL"),
    "pna": ModelKind(Pna, check_pna, bound="1-WL"),
    # Transformers.
    "gps": ModelKind(Gps, check_gps),
    "graphormer": ModelKind(Graphormer, check_graphormer, encodings=("spd",), structures=graphormer_structures),
    "graphormer-gd": ModelKind(
        GraphormerGd, check_graphormer, encodings=("resistance",), structures=graphormer_structures
    ),
    "graphormer-urpe": ModelKind(
        GraphormerUrpe, check_graphormer, encodings=("spd",), structures=graphormer_structures
    ),
    "san": ModelKind(San, check_san, bound="1-WL"),
    "transformer": ModelKind(Transformer, check_transformer, bound="1-WL"),
}

__all__ = [
    "MODELS",
    "STATISTICS",
    "Gat",
    "GatV2",
    "Gcn",
    "GcnOgb",
    "GcnSymmetric",
    "GcnVirtual",
    "Gin",
    "GinOgb",
    "GinVirtual",
    "Gine",
    "Gps",
    "GraphSage",
    "Graphormer",
    "GraphormerGd",
    "GraphormerUrpe",
    "Grit",
    "MoNet",
    "ModelKind",
    "Pna",
    "San",
    "Transformer",
]
