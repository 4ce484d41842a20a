"""The fused form of RRWP: sparse-dense powers written straight into the packed (P, K) layout (``cpp/rrwp.h``).

Shape letters: N nodes of the batch, P node pairs, E edges, B graphs, K walk steps.
"""

import ctypes

import torch
from torch import Tensor

from grit.kernels.choice import library

_SUFFIXES = {torch.float32: "float", torch.float64: "double"}


class _Problem(ctypes.Structure):
    """`WalkProblem` of ``cpp/rrwp.h``, field by field."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("graphs", "steps", "threads", "nodes")),
        *((name, ctypes.c_void_p) for name in ("node_ptr", "row_ptr", "target", "chance", "pair", "node")),
    )


def walks_are_fused(device: torch.device, dtype: torch.dtype) -> bool:
    """Whether `walk_powers` can be used, and is wanted."""
    return device.type == "cpu" and dtype in _SUFFIXES and library() is not None


def walk_powers(
    node_ptr: Tensor, row_ptr: Tensor, target: Tensor, chance: Tensor, walk_steps: int
) -> tuple[Tensor, Tensor]:
    """Powers 0 to K-1 of the walk matrix of every graph, for all pairs of its nodes: (N, K) the diagonal, (P, K).

    Args:
        node_ptr: (B + 1,) int64; where the nodes of each graph begin.
        row_ptr: (N + 1,) int64; where the edges out of each node begin.
        target: (E,) int64; their targets, numbered over the batch, each once.
        chance: (N,), the probability of each way out of a node.
        walk_steps: K.
    """
    kernels = library()
    assert kernels is not None
    sizes = node_ptr.diff()
    num_nodes, num_pairs = chance.numel(), int((sizes * sizes).sum())
    node = chance.new_empty(num_nodes, walk_steps)
    pair = chance.new_empty(num_pairs, walk_steps)
    tensors = [tensor.contiguous() for tensor in (node_ptr, row_ptr, target, chance, pair, node)]
    problem = _Problem(
        node_ptr.numel() - 1, walk_steps, torch.get_num_threads(), num_nodes, *(tensor.data_ptr() for tensor in tensors)
    )
    getattr(kernels, f"grit_walk_{_SUFFIXES[chance.dtype]}")(ctypes.byref(problem))
    return node, pair
