"""Parts that several models share."""

from grit.models.blocks.draws import Draws
from grit.models.blocks.ogb_stack import OgbStack
from grit.models.blocks.output import Output, Pooling
from grit.models.blocks.stack import LayerStack, ResidualLayer

__all__ = ["Draws", "LayerStack", "OgbStack", "Output", "Pooling", "ResidualLayer"]
