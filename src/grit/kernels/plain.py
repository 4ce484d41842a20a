"""Operations over packed pairs in plain PyTorch.

A row is the pairs of one query node, consecutive in the packed layout (`grit.graphs.pairs`).

Shape letters: N nodes of the batch, P node pairs, H heads, C channels per head.
"""

import torch
from torch import Tensor

from grit.graphs.pairs import Pairs


def signed_sqrt(z: Tensor) -> Tensor:
    """ρ(z) = sqrt(ReLU(z)) - sqrt(ReLU(-z)), any shape.

    Written with ReLU, whose backward is a mask, because that makes the gradient at exactly 0 equal to 0; the shorter
    sign(z) * sqrt(|z|) gives NaN there, and zero-padded pairs do reach 0.
    """
    return torch.relu(z).sqrt() - torch.relu(-z).sqrt()


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
