"""Messages that arrive at the same node, made one.

Shape letters: E messages, N nodes.
"""

import torch
from torch import Tensor


def count_at(target: Tensor, num_nodes: int, dtype: torch.dtype) -> Tensor:
    """How many messages each node receives: (E,) -> (N,)."""
    ones = torch.ones(target.shape[0], dtype=dtype, device=target.device)
    return torch.zeros(num_nodes, dtype=dtype, device=target.device).scatter_add(0, target, ones)


def sum_at(messages: Tensor, target: Tensor, num_nodes: int) -> Tensor:
    """Their sum at each node, 0 where there is none: (E, ...) -> (N, ...)."""
    total = messages.new_zeros(num_nodes, *messages.shape[1:])
    return total.scatter_add(0, _like(target, messages), messages)


def mean_at(messages: Tensor, target: Tensor, num_nodes: int) -> Tensor:
    """Their mean at each node, 0 where there is none: (E, ...) -> (N, ...)."""
    total = sum_at(messages, target, num_nodes)
    return total / _like(count_at(target, num_nodes, messages.dtype).clamp(min=1), total)


def max_at(messages: Tensor, target: Tensor, num_nodes: int) -> Tensor:
    """The largest at each node, 0 where there is none: (E, ...) -> (N, ...)."""
    none = messages.new_zeros(num_nodes, *messages.shape[1:])
    return none.scatter_reduce(0, _like(target, messages), messages, reduce="amax", include_self=False)


def min_at(messages: Tensor, target: Tensor, num_nodes: int) -> Tensor:
    """The smallest at each node, 0 where there is none: (E, ...) -> (N, ...)."""
    none = messages.new_zeros(num_nodes, *messages.shape[1:])
    return none.scatter_reduce(0, _like(target, messages), messages, reduce="amin", include_self=False)


def _like(rows: Tensor, values: Tensor) -> Tensor:
    """One number per row, repeated over all its channels: (R,) -> (R, ...)."""
    return rows.view(-1, *[1] * (values.dim() - 1)).expand(rows.shape[0], *values.shape[1:])
