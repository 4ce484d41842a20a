"""Rings: the chordless cycles of a graph, which CIN glues in as two-dimensional cells."""

from collections.abc import Mapping

import numpy as np

from grit.encodings.structures.cycles import find_cycles
from grit.encodings.structures.structure import EDGE, NODE, OneGraph, StructureKind
from grit.graphs.chunk import Array


def rings(graph: OneGraph, size: int) -> Mapping[str, Array]:
    """Cycles without a chord of 3 to ``size`` nodes, directions and parallel edges ignored.

    Parts:
        node: (2, M), ring and node, for every node of every ring.
        edge: (2, M), ring and listed edge, for every listed edge, in either direction, that joins neighbours on the ring.
    """
    listed: dict[tuple[int, int], list[int]] = {}
    for number, (source, target) in enumerate(graph.edge_index.T.tolist()):
        listed.setdefault((source, target), []).append(number)
    # Sorted, so that the order of nodes and edges in the input decides nothing but numbers.
    found = sorted(find_cycles(graph, size, chordless=True), key=sorted)
    nodes = [(number, node) for number, ring in enumerate(found) for node in sorted(ring)]
    edges = [
        (number, edge)
        for number, ring in enumerate(found)
        for one, other in zip(ring, ring[1:] + ring[:1], strict=True)
        for pair in ((one, other), (other, one))
        for edge in listed.get(pair, ())
    ]
    return {"node": _columns(nodes), "edge": _columns(sorted(edges))}


RINGS = StructureKind(rings, parts={"node": ("ring", NODE), "edge": ("ring", EDGE)}, counts={"ring": "node"})


def _columns(found: list[tuple[int, int]]) -> Array:
    return np.array(found, dtype=np.int64).reshape(-1, 2).T
