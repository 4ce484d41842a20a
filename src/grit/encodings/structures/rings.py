"""Rings: the chordless cycles of a graph, which CIN glues in as two-dimensional cells."""

from collections.abc import Mapping

import networkx as nx
import numpy as np

from grit.encodings.structures.structure import EDGE, NODE, OneGraph, StructureKind
from grit.graphs.chunk import Array


def rings(graph: OneGraph, size: int) -> Mapping[str, Array]:
    """Cycles without a chord of 3 to ``size`` nodes, directions and parallel edges ignored.

    Parts:
        node: (2, M), ring and node, for every node of every ring.
        edge: (2, M), ring and listed edge, for every listed edge, in either direction, that joins neighbours on the ring.
    """
    simple = nx.Graph(edge for edge in graph.edge_index.T.tolist() if edge[0] != edge[1])
    # Sorted, so that the order of nodes and edges in the input decides nothing but numbers.
    found = sorted(sorted(cycle) for cycle in nx.chordless_cycles(simple, length_bound=size) if len(cycle) > 2)
    on_ring = np.zeros((len(found), graph.num_nodes), dtype=bool)
    for number, nodes in enumerate(found):
        on_ring[number, nodes] = True
    # A ring has no chord: an edge between two of its nodes is one of its own.
    source, target = graph.edge_index
    of_ring = on_ring[:, source] & on_ring[:, target] & (source != target)
    return {"node": np.argwhere(on_ring).T.astype(np.int64), "edge": np.argwhere(of_ring).T.astype(np.int64)}


RINGS = StructureKind(rings, parts={"node": ("ring", NODE), "edge": ("ring", EDGE)}, counts={"ring": "node"})
