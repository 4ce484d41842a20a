"""What every attention module gives and takes, so that they are interchangeable in `GritLayer` (table `ATTENTIONS`)."""

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

from torch import Tensor, nn

from grit.errors import GritError
from grit.graphs.pairs import Pairs


class AttentionOutput(NamedTuple):
    """Result of one attention.

    Attributes:
        node: (N, D), heads concatenated, before the output projection.
        pair: (P, D), the new pair representation before its output projection; None if this attention makes none.
        weights: (P, H), softmax over the keys of each query, before dropout.
    """

    node: Tensor
    pair: Tensor | None
    weights: Tensor


class PairAttention(nn.Module, ABC):
    """Attention of every query node over its keys, which may read and rewrite a representation of every pair.

    Constructors take ``hidden_dim``, ``num_heads``, ``attention_dropout`` and ``clamp`` (absolute bound on the logits,
    None for no bound) as keywords.
    """

    makes_pairs: ClassVar[bool]
    reads_pairs: ClassVar[bool] = True

    @abstractmethod
    def forward(self, x: Tensor, pair: Tensor, pairs: Pairs) -> AttentionOutput:
        """Attend: x (N, D) and pair (P, D) -> `AttentionOutput`."""


def check_rows(x: Tensor, pair: Tensor, pairs: Pairs) -> None:
    """Raise unless x has a row for every node, and pair one for every pair."""
    if x.shape[0] != pairs.num_nodes or pair.shape[0] != pairs.num_pairs:
        raise GritError(
            f"x has {x.shape[0]} rows and pair {pair.shape[0]}, "
            f"but there are {pairs.num_nodes} nodes and {pairs.num_pairs} pairs."
        )


def check_heads(hidden_dim: int, num_heads: int) -> int:
    """C = D / H, the channels of a head."""
    if hidden_dim < 1 or num_heads < 1:
        raise GritError(f"hidden_dim and num_heads must be positive, got {hidden_dim} and {num_heads}.")
    if hidden_dim % num_heads:
        options = [h for h in range(1, hidden_dim + 1) if hidden_dim % h == 0]
        nearest = min(options, key=lambda h: abs(h - num_heads))
        raise GritError(
            f"hidden_dim {hidden_dim} is not divisible by num_heads {num_heads}; "
            f"for this width take for example num_heads={nearest}"
        )
    return hidden_dim // num_heads
