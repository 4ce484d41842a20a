"""Parts that several models share."""

from grit.models.blocks.draws import Draws
from grit.models.blocks.output import Output

__all__ = ["Draws", "Output"]
