"""Parts that several models share."""

from grit.models.blocks.draws import Draws
from grit.models.blocks.encoded_nodes import EncodedNodes
from grit.models.blocks.few_rows import FewRowsNorm, normed_mlp
from grit.models.blocks.gated_gcn import GatedGcnLayer, normalised_gates
from grit.models.blocks.grid import Grid, GridAttention
from grit.models.blocks.layer_stack import LayerStack, ResidualLayer
from grit.models.blocks.messages import count_at, max_at, mean_at, min_at, sum_at
from grit.models.blocks.ogb_stack import OgbStack
from grit.models.blocks.one_hot import OneHot
from grit.models.blocks.output import Output, Pooling
from grit.models.blocks.virtual_nodes import Tokens, with_virtual_nodes

__all__ = [
    "Draws",
    "EncodedNodes",
    "FewRowsNorm",
    "GatedGcnLayer",
    "Grid",
    "GridAttention",
    "LayerStack",
    "OgbStack",
    "OneHot",
    "Output",
    "Pooling",
    "ResidualLayer",
    "Tokens",
    "count_at",
    "max_at",
    "mean_at",
    "min_at",
    "normalised_gates",
    "normed_mlp",
    "sum_at",
    "with_virtual_nodes",
]
