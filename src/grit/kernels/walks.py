"""The fused form of RRWP: sparse-dense powers written straight into the packed (P, K) layout (``cpp/rrwp.h``).

Shape letters: N nodes of the batch, P node pairs, E edges, B graphs, K walk steps.
"""

import torch
from torch import Tensor

from grit.graphs.packed import PackedGraphs
from grit.kernels.backend import library
from grit.kernels.native import SUFFIXES, Call, Mirror, integers, pointers


class _WalkProblem(Mirror):
    """`WalkProblem` of ``cpp/rrwp.h``."""

    cpp_name = "walk"
    _fields_ = (
        *integers("graphs", "steps", "threads"),
        *pointers("node_ptr", "edge_ptr", "source", "target", "pair", "node"),
    )


def walks_are_fused(device: torch.device, dtype: torch.dtype) -> bool:
    """Whether `walk_powers` can be used, and is wanted."""
    return device.type == "cpu" and dtype in SUFFIXES and library() is not None


def walk_powers(graphs: PackedGraphs, walk_steps: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Powers 0 to K-1 of the walk matrix of every graph, for all pairs of its nodes: (N, K) the diagonal, (P, K).

    The degree counts every edge listed; a step goes to distinct targets. Edge weights are not read: `rrwp_encoding` leaves
    weighted graphs to the plain form.
    """
    sizes = graphs.nodes_per_graph
    node = torch.empty(graphs.num_nodes, walk_steps, dtype=dtype)
    pair = torch.empty(int((sizes * sizes).sum()), walk_steps, dtype=dtype)
    call = Call(_WalkProblem(graphs=len(graphs), steps=walk_steps, threads=torch.get_num_threads()), dtype)
    source, target = graphs.edge_index.unbind()
    call.set(
        node_ptr=graphs.node_ptr, edge_ptr=graphs.edge_ptr, source=source, target=target, pair=pair, node=node
    )  # fmt: skip
    call.run("grit_walk")
    return node, pair
