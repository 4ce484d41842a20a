"""Ego nets: for every node the part of the graph within some steps of it, which GIN-AK+ and K-Subgraph SAT read."""

from collections.abc import Mapping

import numpy as np

from grit.encodings.structures.structure import EDGE, NODE, VALUE, OneGraph, StructureKind
from grit.errors import GritError
from grit.graphs.chunk import Array

MOST_ITEMS = 2_000_000  # members, or edges, of all nets of one graph


def egonets(graph: OneGraph, size: int) -> Mapping[str, Array]:
    """The nodes at most ``size`` steps from each node, its root, and the listed edges between them.

    Steps ignore the directions of edges. Nets come in the order of their roots, members in the order of nodes.

    Parts:
        member: (4, M), number of the member, root, node, steps from the root to the node.
        edge: (3, M), members at the source and the target of a listed edge that has both in one net, and the edge.
    """
    n = graph.num_nodes
    members, steps = _members(graph, size)
    root, node = members // n, members % n
    source, target = graph.edge_index
    by_source = np.argsort(source, kind="stable")
    at, edge = _expand(node, by_source, source, n, graph, size)  # every edge that leaves a member
    wanted = root[at] * n + target[edge]
    found = np.searchsorted(members, wanted).clip(max=members.size - 1)
    inside = members[found] == wanted
    return {
        "member": np.stack([np.arange(members.size), root, node, steps]),
        "edge": np.stack([at[inside], found[inside], edge[inside]]),
    }


EGONETS = StructureKind(
    egonets,
    parts={"member": ("member", NODE, NODE, VALUE), "edge": ("member", "member", EDGE)},
    counts={"member": "member"},
)


def _members(graph: OneGraph, size: int) -> tuple[Array, Array]:
    """The code root * n + node of every member, increasing, and its steps from the root."""
    n = graph.num_nodes
    source, target = graph.edge_index
    joined = np.unique(np.concatenate([source * n + target, target * n + source]))
    joined = joined[joined // n != joined % n]
    last = members = np.arange(n) * (n + 1)
    steps = np.zeros(n, dtype=np.int64)
    for step in range(1, size + 1):
        at, neighbour = _expand(last % n, np.arange(joined.size), joined // n, n, graph, size)
        last = np.setdiff1d(last[at] // n * n + joined[neighbour] % n, members)
        if not last.size:
            break
        members = np.concatenate([members, last])
        steps = np.concatenate([steps, np.full(last.size, step)])
        order = np.argsort(members)
        members, steps = members[order], steps[order]
    return members, steps


def _expand(nodes: Array, order: Array, source: Array, n: int, graph: OneGraph, size: int) -> tuple[Array, Array]:
    """For each of ``nodes`` the edges that leave it: place in ``nodes``, edge; ``order`` sorts the edges by source."""
    degree = np.bincount(source, minlength=n)
    first = np.cumsum(degree) - degree
    count = degree[nodes]
    total = int(count.sum())
    if total > MOST_ITEMS:
        raise GritError(
            f"the ego nets of {size} steps in a graph with {graph.num_nodes:,} nodes and {graph.edge_index.shape[1]:,} listed "
            f"edges are too large: {total:,} items at least, {MOST_ITEMS:,} are allowed. Use fewer steps, leave such graphs out, "
            "or use a model that reads no ego nets."
        )
    at = np.repeat(np.arange(nodes.size), count)
    place = np.arange(total) - np.repeat(np.cumsum(count) - count, count)
    return at, order[first[nodes[at]] + place]
