"""The fused form of RRWP: sparse-dense powers written straight into the packed (P, K) layout (``cpp/rrwp.h``).

Shape letters: N nodes of the batch, P node pairs, E edges, B graphs, K walk steps.
"""

import ctypes

import torch
from torch import Tensor

from grit.kernels.choice import library
from grit.kernels.native import SUFFIXES, Call, integers, pointers


class _Problem(ctypes.Structure):
    """`WalkProblem` of ``cpp/rrwp.h``."""

    _fields_ = (
        *integers("graphs", "steps", "threads", "nodes"),
        *pointers("node_ptr", "row_ptr", "target", "chance", "pair", "node"),
    )


def walks_are_fused(device: torch.device, dtype: torch.dtype) -> bool:
    """Whether `walk_powers` can be used, and is wanted."""
    return device.type == "cpu" and dtype in SUFFIXES and library() is not None


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
    sizes = node_ptr.diff()
    node = chance.new_empty(chance.numel(), walk_steps)
    pair = chance.new_empty(int((sizes * sizes).sum()), walk_steps)
    problem = _Problem(graphs=sizes.numel(), steps=walk_steps, threads=torch.get_num_threads(), nodes=chance.numel())
    call = Call(problem, chance.dtype)
    call.set(node_ptr=node_ptr, row_ptr=row_ptr, target=target, chance=chance, pair=pair, node=node)
    call.run("grit_walk")
    return node, pair
