"""Parts that several models share."""

from grit.models.blocks.dense import Dense
from grit.models.blocks.draws import Draws
from grit.models.blocks.encoded_nodes import EncodedNodes, has_frequency
from grit.models.blocks.gated_gcn import GatedGcnLayer, normalised_gates
from grit.models.blocks.lenient_norm import LenientBatchNorm
from grit.models.blocks.output import Output

__all__ = [
    "Dense",
    "Draws",
    "EncodedNodes",
    "GatedGcnLayer",
    "LenientBatchNorm",
    "Output",
    "has_frequency",
    "normalised_gates",
]
