"""Features as they are: categories as zeros and a one."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from grit.graphs.schema import Features


class OneHot(nn.Module):
    """Features -> (R, width) without anything to learn: one-hot categories side by side; numbers unchanged; a 1 for nothing.

    Args:
        features: What is encoded.

    Attributes:
        width: Of the result.
    """

    def __init__(self, features: Features) -> None:
        super().__init__()
        self.features = features
        self.width = 1 if features.kind == "none" else sum(features.sizes)

    def forward(self, values: Tensor, dtype: torch.dtype) -> Tensor:
        """Encode: (R, F) -> (R, width)."""
        if self.features.kind == "none":
            return torch.ones(values.shape[0], 1, dtype=dtype, device=values.device)
        if self.features.kind == "numeric":
            return values.to(dtype)
        columns = [F.one_hot(values[:, c], size) for c, size in enumerate(self.features.sizes)]
        return torch.cat(columns, 1).to(dtype)
