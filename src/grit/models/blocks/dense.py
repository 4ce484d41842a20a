"""Rows of groups of unequal size in one tensor with a place for each, as torch's attention reads them."""

import torch
from torch import Tensor

from grit.graphs.packed import offsets


class Dense:
    """Groups of rows, such as the nodes of each graph, padded to the largest.

    Shape letters: R rows in all, G groups, n rows of the largest, D channels.

    Args:
        sizes: (G,) rows of each group, one after another.

    Attributes:
        padding: (G, n) bool, True where there is no row.
    """

    def __init__(self, sizes: Tensor) -> None:
        width = int(sizes.max())
        self.padding = torch.arange(width, device=sizes.device) >= sizes.unsqueeze(1)
        shift = torch.arange(sizes.numel(), device=sizes.device) * width - offsets(sizes)[:-1]  # (G,)
        rows = torch.repeat_interleave(shift, sizes)
        self._place = rows + torch.arange(rows.numel(), device=sizes.device)  # (R,)

    def spread(self, x: Tensor) -> Tensor:
        """(R, D) -> (G, n, D), zeros where there is no row."""
        rows = x.new_zeros(self.padding.numel(), x.shape[1]).index_copy(0, self._place, x)
        return rows.view(*self.padding.shape, -1)

    def gather(self, rows: Tensor) -> Tensor:
        """(G, n, D) -> (R, D)."""
        return rows.flatten(0, 1)[self._place]
