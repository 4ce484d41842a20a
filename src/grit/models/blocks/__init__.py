"""Parts that several models share."""

from grit.models.blocks.draws import Draws
from grit.models.blocks.few_rows import FewRowsNorm, normed_mlp
from grit.models.blocks.one_hot import OneHot
from grit.models.blocks.output import Output

__all__ = ["Draws", "FewRowsNorm", "OneHot", "Output", "normed_mlp"]
