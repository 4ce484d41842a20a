"""Random walks on packed graphs, and what windows show of them.

Walks ignore the directions of edges, self-loops and how often an edge is listed.

Shape letters: N nodes of the batch, E edges, J ordered pairs of neighbours, W walks, L nodes of each, s window.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from grit.graphs.packed import PackedGraphs, offsets


class NeighbourLists(NamedTuple):
    """Ordered pairs of nodes that any listed edge joins, in whichever direction; without loops.

    Attributes:
        code: (J,), i * N + j of each pair, increasing.
        ptr: (N + 1,), where the pairs of each node i begin.
        reverse: (J,), the pair (j, i) of each pair (i, j).
        is_joined: (E,), which listed edges are no loops.
        pair_of_edge: The pair of each of these.
    """

    code: Tensor
    ptr: Tensor
    reverse: Tensor
    is_joined: Tensor
    pair_of_edge: Tensor


class Walks(NamedTuple):
    """Walks: nodes (W, L), and the pair of each step (W, L - 1), -1 on the spot."""

    nodes: Tensor
    pairs: Tensor


def neighbours(graphs: PackedGraphs) -> NeighbourLists:
    """The pairs of neighbours of a batch."""
    n, (source, target) = graphs.num_nodes, graphs.edge_index
    is_joined = source != target
    source, target = source[is_joined], target[is_joined]
    code = torch.unique(torch.cat([source * n + target, target * n + source]))
    ptr = offsets(torch.bincount(code // n, minlength=n))
    reverse = torch.searchsorted(code, code % n * n + code // n)
    return NeighbourLists(code, ptr, reverse, is_joined, torch.searchsorted(code, source * n + target))


def draw_walks(joined: NeighbourLists, start: Tensor, numbers: Tensor) -> Walks:
    """Walks that step to any neighbour with equal chance, back only from a dead end.

    Args:
        joined: The neighbours.
        start: (W,), first nodes.
        numbers: (W, L - 1) in [0, 1), which decide.
    """
    n, degree = joined.ptr.numel() - 1, joined.ptr.diff()
    nodes, pairs = [start], []
    back = torch.full_like(start, -1)  # the pair that would lead back
    code = F.pad(joined.code, (0, 1))  # where nothing can be read, something is
    reverse = F.pad(joined.reverse, (0, 1))
    for step in range(numbers.shape[1]):
        here = nodes[-1]
        ways = degree[here] - ((back >= 0) & (degree[here] > 1)).long()
        chosen = joined.ptr[here] + (numbers[:, step] * ways).long().clamp(max=(ways - 1).clamp(min=0))
        chosen = chosen + ((back >= 0) & (degree[here] > 1) & (chosen >= back)).long()  # that way is left out
        stays = ways == 0
        pairs.append(torch.where(stays, -1, chosen))
        nodes.append(torch.where(stays, here, code[chosen] % n))
        back = torch.where(stays, -1, reverse[chosen])
    return Walks(torch.stack(nodes, 1), torch.stack(pairs, 1))


def sameness(walk: Tensor, joined: NeighbourLists, window: int) -> Tensor:
    """Which of the last nodes are the same as each, 1 to s steps before, and which are joined to it, 2 to s: (W, L, 2s - 1)."""
    n = joined.ptr.numel() - 1
    found = walk.new_zeros(*walk.shape, 2 * window - 1, dtype=torch.bool)
    for back in range(1, min(window, walk.shape[1] - 1) + 1):
        here, before = walk[:, back:], walk[:, :-back]
        found[:, back:, back - 1] = here == before
        if back > 1 and joined.code.numel():
            code = here * n + before
            at = torch.searchsorted(joined.code, code).clamp(max=joined.code.numel() - 1)
            found[:, back:, window + back - 2] = joined.code[at] == code
    return found
