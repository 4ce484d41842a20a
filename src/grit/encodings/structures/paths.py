"""Shortest paths: which edges stand at which step of the way from one node to another, for Graphormer's edge encoding."""

from collections.abc import Mapping

import numpy as np

from grit.encodings.structures.structure import EDGE, NODE, VALUE, OneGraph, StructureKind
from grit.graphs.chunk import Array

NO_WAY = 2**29  # longer than any path, and two of them are still an int32
_AT_A_TIME = 5_000_000  # combinations of first node, last node and edge that are looked at


def paths(graph: OneGraph, size: int) -> Mapping[str, Array]:
    """The first ``size`` edges of all shortest paths between different nodes, along the edges' directions.

    Where several paths are equally short each has the same share, parallel edges making paths of their own: a choice of one would
    depend on how nodes are numbered. Self-loops are on no shortest path.

    Parts:
        edge: (4, M), first node of the path, last node, listed edge, its step on the path from 0.
        share: (M,), the share of the shortest paths between these nodes that take this edge at this step.
    """
    distance, count = shortest_paths(graph)
    edges = np.flatnonzero(graph.edge_index[0] != graph.edge_index[1])
    source, target = graph.edge_index[:, edges]
    n, found = graph.num_nodes, []
    rows = max(1, _AT_A_TIME // max(1, n * edges.size))
    for start in range(0, n, rows):
        first = slice(start, start + rows)
        before, after, whole = distance[first, source][:, None], distance[target].T, distance[first][:, :, None]
        on_way = (after + (before + 1) == whole) & (before < size)  # (i, j, E)
        i, j, e = np.nonzero(on_way)
        found.append(np.stack([i + start, j, e]))
    i, j, e = np.concatenate(found, axis=1)
    share = count[i, source[e]] * count[target[e], j] / count[i, j]
    return {
        "edge": np.stack([i, j, edges[e], distance[i, source[e]].astype(np.int64)]),
        "share": share.astype(np.float64),
    }


def shortest_paths(graph: OneGraph) -> tuple[Array, Array]:
    """Length, int32, and number, float64, of shortest paths from i to j, (n, n) each; where there is none, `NO_WAY`."""
    n = graph.num_nodes
    adjacency = np.zeros((n, n))
    np.add.at(adjacency, tuple(graph.edge_index), 1.0)
    distance, count = np.full((n, n), NO_WAY, dtype=np.int32), np.eye(n)
    np.fill_diagonal(distance, 0)
    reached = np.eye(n)
    for length in range(1, n):
        reached = (reached @ adjacency) * (distance == NO_WAY)
        new = reached > 0
        if not new.any():
            break
        distance[new], count[new] = length, reached[new]
    return distance, count


PATHS = StructureKind(paths, parts={"edge": (NODE, NODE, EDGE, VALUE), "share": ()}, counts={})
