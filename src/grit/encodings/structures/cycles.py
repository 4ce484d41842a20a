"""Cycles of a graph, one by one or counted. The search ends with an error before it takes long: dense graphs have too many."""

from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np

from grit.encodings.structures.structure import NODE, VALUE, OneGraph, StructureKind
from grit.errors import GritError
from grit.graphs.chunk import Array

MOST_CYCLES = 20_000  # of one graph; a molecule has some tens
MOST_STEPS = 3_000_000  # some seconds
SHORTEST = 3


def find_cycles(graph: OneGraph, size: int, *, chordless: bool = False) -> Iterator[tuple[int, ...]]:
    """The simple cycles of 3 to ``size`` nodes, each once, its nodes in order; directions, loops and parallel edges ignored.

    Args:
        graph: The graph.
        size: Of the longest.
        chordless: Only those without an edge between nodes that are no neighbours on the cycle.
    """
    joined = _without_dead_ends(_neighbours(graph))
    ways = {node: sorted(others, reverse=True) for node, others in joined.items()}  # the smallest is followed first
    steps = found = 0
    for root in sorted(joined):  # the smallest node of each cycle that is found below
        back = _distances(joined, root, size // 2)
        paths: list[tuple[int, ...]] = [(root,)]
        while paths:
            path = paths.pop()
            for node in ways[path[-1]]:
                steps += 1
                # The way back from the node must be short enough; a node that is not in `back` is too far, or below the root.
                if node not in back or len(path) + back[node] > size or node in path:
                    continue
                closes = root in joined[node] and len(path) >= SHORTEST - 1
                if chordless and any(
                    other in joined[node] for other in path[1 if closes or len(path) == 1 else 0 : -1]
                ):
                    continue
                if closes and path[1] < node:  # each cycle is met in both directions
                    found += 1
                    yield *path, node
                if not (chordless and closes):
                    paths.append((*path, node))
            if found > MOST_CYCLES or steps > MOST_STEPS:
                raise _too_many(graph, size, chordless, steps, found)


def cycle_counts(graph: OneGraph, size: int) -> Mapping[str, Array]:
    """How many cycles of each length, 3 to ``size``, run through every node and every pair of neighbours on them.

    Parts:
        node: (3, M), node, length - 3, number of cycles; where that is not 0.
        pair: (4, M), node, node, length - 3, number of cycles; each pair in both orders.
    """
    nodes: Counter[tuple[int, ...]] = Counter()
    pairs: Counter[tuple[int, ...]] = Counter()
    for cycle in find_cycles(graph, size):
        place = len(cycle) - SHORTEST
        nodes.update((node, place) for node in cycle)
        for one, other in zip(cycle, cycle[1:] + cycle[:1], strict=True):
            pairs.update([(one, other, place), (other, one, place)])
    return {"node": _columns(nodes, 3), "pair": _columns(pairs, 4)}


CYCLES = StructureKind(
    cycle_counts, parts={"node": (NODE, VALUE, VALUE), "pair": (NODE, NODE, VALUE, VALUE)}, counts={}
)


def _columns(counted: Mapping[tuple[int, ...], int], rows: int) -> Array:
    found = [(*key, counted[key]) for key in sorted(counted)]
    return np.array(found, dtype=np.int64).reshape(-1, rows).T


def _neighbours(graph: OneGraph) -> dict[int, set[int]]:
    joined: dict[int, set[int]] = {}
    for source, target in graph.edge_index.T.tolist():
        if source != target:
            joined.setdefault(source, set()).add(target)
            joined.setdefault(target, set()).add(source)
    return joined


def _without_dead_ends(joined: dict[int, set[int]]) -> dict[int, set[int]]:
    """Without the nodes that no cycle can reach: those with one neighbour, then those that this leaves with one, and so on."""
    ends = [node for node, others in joined.items() if len(others) < 2]
    while ends:
        end = ends.pop()
        for other in joined.pop(end):
            joined[other].discard(end)
            if len(joined[other]) == 1:
                ends.append(other)
    return joined


def _distances(joined: Mapping[int, set[int]], root: int, most: int) -> dict[int, int]:
    """Steps from the nodes above the root to it, by nodes above it; up to ``most``, as no node of a cycle is farther."""
    found, reached = {root: 0}, {root}
    for distance in range(1, most + 1):
        reached = {node for last in reached for node in joined[last] if node > root and node not in found}
        found.update(dict.fromkeys(reached, distance))
    return found


def _too_many(graph: OneGraph, size: int, chordless: bool, steps: int, found: int) -> GritError:
    what = "rings (cycles without a chord)" if chordless else "cycles"
    pairs = np.unique(np.sort(graph.edge_index, 0), axis=1).shape[1]
    return GritError(
        f"a graph with {graph.num_nodes:,} nodes and {pairs:,} edges has too many {what} of up to {size} nodes: the search ended "
        f"after {steps:,} steps and {found:,} of them. Ask for shorter ones (a smaller size), leave such graphs out, or use a "
        "model that reads no cycles."
    )
