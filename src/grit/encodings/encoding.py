"""The type of an encoding, and of an entry of the table `ENCODINGS`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from grit.errors import GritError
from grit.graphs.packed import PackedGraphs
from grit.graphs.pairs import Pairs


class Encoding(NamedTuple):
    """Positional or structural encoding of a batch.

    Attributes:
        node: (N, node_dim), node_dim 0 where the encoding says nothing of single nodes.
        pair: (P, pair_dim), pair_dim 0 where it says nothing of pairs.
    """

    node: Tensor
    pair: Tensor


@dataclass(frozen=True)
class EncodingKind:
    """One entry of `ENCODINGS`.

    Attributes:
        compute: (graphs, pairs, walk_steps, dtype) -> `Encoding`.
        node_dim: walk_steps -> width of the node part.
        pair_dim: walk_steps -> width of the pair part.
        equivariant: Whether renumbering the nodes renumbers the encoding and changes nothing else. Eigenvectors are not:
            no rule can choose their signs alike for all numberings of a symmetric graph.
        reads_weights: Whether ``edge_weight`` counts; otherwise it changes nothing.
    """

    compute: Callable[[PackedGraphs, Pairs, int, torch.dtype], Encoding]
    node_dim: Callable[[int], int]
    pair_dim: Callable[[int], int]
    equivariant: bool = True
    reads_weights: bool = False


def check_walk_steps(walk_steps: int) -> int:
    """``walk_steps`` itself if it is a length an encoding can have."""
    if isinstance(walk_steps, bool) or not isinstance(walk_steps, int | np.integer):
        raise GritError(f"walk_steps must be a whole number, got {walk_steps!r}.")
    if walk_steps < 1:
        raise GritError(f"walk_steps must be at least 1, got {walk_steps}. The paper uses 16 to 32.")
    return walk_steps
