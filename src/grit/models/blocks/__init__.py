"""Parts that several models share."""

from grit.models.blocks.draws import Draws
from grit.models.blocks.grid import Grid, GridAttention
from grit.models.blocks.node_input import NodeInput
from grit.models.blocks.ogb_stack import OgbStack
from grit.models.blocks.output import Output, Pooling
from grit.models.blocks.stack import LayerStack, ResidualLayer

__all__ = [
    "Draws",
    "Grid",
    "GridAttention",
    "LayerStack",
    "NodeInput",
    "OgbStack",
    "Output",
    "Pooling",
    "ResidualLayer",
]
