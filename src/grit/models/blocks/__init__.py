"""Parts that several models share."""

from grit.models.blocks.draws import Draws
from grit.models.blocks.grid import Grid, GridAttention
from grit.models.blocks.node_input import NodeInput
from grit.models.blocks.output import Output

__all__ = ["Draws", "Grid", "GridAttention", "NodeInput", "Output"]
