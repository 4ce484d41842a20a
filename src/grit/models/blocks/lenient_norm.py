"""Batch normalisation for rows of which a batch may have few: edges, graphs."""

import torch.nn.functional as F
from torch import Tensor

from grit.nn.norm import BatchNorm, is_one_process


class LenientBatchNorm(BatchNorm):
    """`BatchNorm` that takes its running statistics, and leaves them as they are, for fewer than two rows in training.

    Torch stops at one row, and no row at all makes its running statistics NaN. A batch of small molecules may have no bond.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Normalise: (R, D) -> (R, D)."""
        if x.shape[0] > 1 or not self.training or not is_one_process():
            return super().forward(x)
        return F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)
