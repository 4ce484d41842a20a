"""Parts that several models share."""

from grit.models.blocks.draws import Draws
from grit.models.blocks.output import Output
from grit.models.blocks.virtual_nodes import Tokens, with_virtual_nodes

__all__ = ["Draws", "Output", "Tokens", "with_virtual_nodes"]
