"""Operations over packed pairs in plain PyTorch.

A row is the pairs of one query node, consecutive in the packed layout (`grit.graphs.pairs`).

Shape letters: N nodes of the batch, P node pairs, H heads, C channels per head.
"""

import torch
from torch import Tensor

from grit.graphs.pairs import Pairs


def signed_sqrt(z: Tensor) -> Tensor:
    """ρ(z) = sqrt(ReLU(z)) - sqrt(ReLU(-z)), any shape.

    Its derivatives at exactly 0, where zero-padded pairs do arrive, are 0 in every order and direction, as the first is in the
    released code: 0 is replaced by 1 before the root, whose slope at 0 is infinite, and put back after it.
    """
    is_zero = z == 0
    size = torch.where(is_zero, 1.0, z)
    return torch.where(is_zero, 0.0, size.abs().sqrt() * size.sign())


def at_pairs(values: Tensor, index: Tensor) -> Tensor:
    """What each pair reads from its query, or its key: (N, ...) and index (P,) -> (P, ...).

    The same as ``values[index]``, whose backward is several times slower on CPU.
    """
    return values.index_select(0, index)


def row_sum(values: Tensor, pairs: Pairs) -> Tensor:
    """Sum over the keys of each query: (P, ...) -> (N, ...)."""
    out = values.new_zeros(pairs.num_nodes, *values.shape[1:])
    return out.index_add(0, pairs.query, values)


def row_softmax(logits: Tensor, pairs: Pairs) -> Tensor:
    """Softmax over the keys of each query: (P, H) -> (P, H).

    The largest logit of each row is subtracted first; the 1e-16 in the denominator is the released code's.
    """
    index = pairs.query.unsqueeze(1).expand_as(logits)
    top = logits.new_full((pairs.num_nodes, logits.shape[1]), -torch.inf)
    top = top.scatter_reduce(0, index, logits.detach(), reduce="amax")  # (N, H)
    weight = (logits - at_pairs(top, pairs.query)).exp()  # (P, H)
    return weight / at_pairs(row_sum(weight, pairs) + 1e-16, pairs.query)
