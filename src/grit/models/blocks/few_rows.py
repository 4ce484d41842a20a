"""Batch normalisation of things of which a batch may have none, or one."""

from itertools import pairwise

import torch.nn.functional as F
from torch import Tensor, nn

from grit.nn.norm import BatchNorm, is_one_process


class FewRowsNorm(BatchNorm):
    """`BatchNorm` for rows that a batch may lack: edges, rings, graphs.

    In training, the moments of fewer than two rows mean nothing: torch refuses one row, and with none its running statistics turn
    NaN. Such a batch is normalised by the running statistics, which stay as they are. With several processes, all rows count.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Normalise."""
        if self.training and x.shape[0] < 2 and is_one_process():
            return F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)
        return super().forward(x)


def normed_mlp(*widths: int, final: bool, bias: bool = True, last_bias: bool = True) -> nn.Sequential:
    """Linear maps from width to width, after each a norm and ReLU; the last map is bare unless ``final``.

    Args:
        widths: D_0, D_1, ...
        final: Whether norm and ReLU follow the last map, too.
        bias: Of maps that a norm follows, which can do without.
        last_bias: Of a bare last map.
    """
    parts: list[nn.Module] = []
    for number, (before, after) in enumerate(pairwise(widths)):
        is_bare = not final and number == len(widths) - 2
        parts.append(nn.Linear(before, after, bias=last_bias if is_bare else bias))
        if not is_bare:
            parts += [FewRowsNorm(after), nn.ReLU()]
    return nn.Sequential(*parts)
