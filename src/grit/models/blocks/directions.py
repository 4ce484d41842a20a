"""Aggregators of DGN: mean and extremes, and those along an eigenvector.

Shape letters: N nodes of the batch, E edges, D channels, K eigenvectors.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor


class Arriving(NamedTuple):
    """What aggregators read.

    Attributes:
        message: (E, D), m of every edge.
        edge_index: (2, E), where it comes from and where it arrives.
        h: (N, D), what the nodes had before.
        vectors: (N, K), eigenvectors.
    """

    message: Tensor
    edge_index: Tensor
    h: Tensor
    vectors: Tensor

    def total(self, values: Tensor) -> Tensor:
        """Sum over the edges that arrive at each node: (E, ...) -> (N, ...)."""
        return values.new_zeros(self.h.shape[0], *values.shape[1:]).index_add(0, self.edge_index[1], values)

    def field(self, number: int) -> Tensor:
        """Of every edge j -> i and an eigenvector φ: w_ji = (φ_j - φ_i) / (Σ_k |φ_k - φ_i| + 1e-8), (E, 1)."""
        source, target = self.edge_index
        difference = self.vectors[source, number] - self.vectors[target, number]
        return (difference / (self.total(difference.abs())[target] + 1e-8)).unsqueeze(1)


def _mean(arriving: Arriving) -> Tensor:
    count = arriving.total(torch.ones_like(arriving.message[:, :1])).clamp(min=1)
    return arriving.total(arriving.message) / count


def _extreme(reduce: str) -> Callable[[Arriving], Tensor]:
    def aggregate(arriving: Arriving) -> Tensor:
        index = arriving.edge_index[1].unsqueeze(1).expand_as(arriving.message)
        zeros = arriving.message.new_zeros(arriving.h.shape)  # remain where nothing arrives
        return zeros.scatter_reduce(0, index, arriving.message, reduce, include_self=False)

    return aggregate


def _smoothing(number: int) -> Callable[[Arriving], Tensor]:
    """Σ_j |w_ji| m_ji."""
    return lambda arriving: arriving.total(arriving.field(number).abs() * arriving.message)


def _derivative(number: int) -> Callable[[Arriving], Tensor]:
    """|Σ_j w_ji m_ji - (Σ_j w_ji) h_i|."""

    def aggregate(arriving: Arriving) -> Tensor:
        field = arriving.field(number)
        return (arriving.total(field * arriving.message) - arriving.total(field) * arriving.h).abs()

    return aggregate


# What arrives -> (N, D). The number in a name is that of the eigenvector, the trivial one being number 0.
AGGREGATORS: dict[str, Callable[[Arriving], Tensor]] = {
    "mean": _mean,
    "max": _extreme("amax"),
    "min": _extreme("amin"),
    "dir1-av": _smoothing(1),
    "dir1-dx": _derivative(1),
    "dir2-av": _smoothing(2),
    "dir2-dx": _derivative(2),
}
