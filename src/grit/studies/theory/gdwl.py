"""Weisfeiler-Leman tests with distances (GD-WL), exact, Section 3.2 of the paper ("RRWP is more expressive than SPD").

    χ_t(v) = hash {{ (d(v, u), χ_{t-1}(u)) : u ∈ V }}

Several graphs are refined together until no colour class splits any more, so that equal colours in different graphs
mean the same. No number here is rounded and no hash can collide: distances are whole numbers or fractions, and a colour
is the serial number of what it stands for. Graphs are symmetric 0/1 matrices without self-loops.

Shape letters: n nodes of a graph, K walk steps.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from fractions import Fraction
from math import comb, lcm
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Adjacency = NDArray[np.int64]  # (n, n)
Exact = NDArray[Any]  # (n, n) of whole numbers of any size
Colouring = list[list[int]]  # [v][u]: the colour of the ordered pair (v, u); equal numbers, equal distances
Distance = Callable[[Sequence[Adjacency]], list[Colouring]]
NEVER = -1  # the distance of nodes that no path joins

H = TypeVar("H", bound=Hashable)


class Numbering(dict[H, int]):
    """Serial numbers of values in the order of their first appearance."""

    def __missing__(self, value: H) -> int:
        self[value] = len(self)
        return self[value]


# --- distances ---------------------------------------------------------------------------------------------------------


def edges(graphs: Sequence[Adjacency]) -> list[Colouring]:
    """Same node, adjacent, or neither: GD-WL with it is the 1-WL test."""
    return [(graph + 2 * np.eye(len(graph), dtype=np.int64)).tolist() for graph in graphs]


def shortest_paths(graphs: Sequence[Adjacency]) -> list[Colouring]:
    """Lengths of shortest paths; `NEVER` between components."""
    return [path_lengths(graph).tolist() for graph in graphs]


def resistances(graphs: Sequence[Adjacency]) -> list[Colouring]:
    """Resistance distances with a unit resistor on every edge, as fractions; `NEVER` between components."""
    number: Numbering[Fraction] = Numbering()
    return [[[number[r] for r in row] for row in effective_resistance(graph)] for graph in graphs]


def walks(walk_steps: int) -> Distance:
    """RRWP: d(v, u) = [I, M, ..., M^(K-1)]_vu with K = ``walk_steps`` channels."""

    def distance(graphs: Sequence[Adjacency]) -> list[Colouring]:
        *_, with_all_channels = _walk_colourings(graphs, walk_steps)
        return with_all_channels

    return distance


def full_walks(graphs: Sequence[Adjacency]) -> list[Colouring]:
    """RRWP with K = n, the paper's choice, each graph with its own n.

    Numbers of graphs of different sizes are unrelated, which does no harm: GD-WL tells sizes apart by the number of nodes.
    """
    colourings: dict[int, Colouring] = {}
    for size in {len(graph) for graph in graphs}:
        chosen = [g for g, graph in enumerate(graphs) if len(graph) == size]
        colourings |= zip(chosen, walks(size)([graphs[g] for g in chosen]), strict=True)
    return [colourings[g] for g in range(len(graphs))]


def _walk_colourings(graphs: Sequence[Adjacency], walk_steps: int) -> Iterator[list[Colouring]]:
    """The colours of pairs under RRWP with 1, 2, ..., ``walk_steps`` channels."""
    sequences = [scaled_walks(graph, common_degree(graphs), walk_steps) for graph in graphs]
    colourings: list[Colouring] = [[[0] * len(graph) for _ in graph] for graph in graphs]
    for powers in zip(*sequences, strict=True):
        number: Numbering[tuple[int, int]] = Numbering()
        colourings = [_split(*parts, number) for parts in zip(colourings, powers, strict=True)]
        yield colourings


def _split(colouring: Colouring, power: Exact, number: Numbering[tuple[int, int]]) -> Colouring:
    return [[number[pair] for pair in zip(*rows, strict=True)] for rows in zip(colouring, power.tolist(), strict=True)]


def path_lengths(graph: Adjacency) -> Adjacency:
    """Shortest path lengths, (n, n); `NEVER` where there is none."""
    length = np.where(np.eye(len(graph), dtype=bool), 0, NEVER)
    reached = np.eye(len(graph), dtype=bool)
    for step in range(1, len(graph)):
        reached = (reached.astype(np.int64) @ graph > 0) | reached
        length[reached & (length == NEVER)] = step
    return length


def effective_resistance(graph: Adjacency) -> list[list[Fraction]]:
    """Resistance distances, (n, n).

    With one node of each component grounded and G the inverse of what is left of the Laplacian, r_ij = G_ii + G_jj - 2 G_ij.
    """
    length = path_lengths(graph)
    out = [[Fraction(NEVER)] * len(graph) for _ in graph]
    for root in range(len(graph)):
        component = np.flatnonzero(length[root] != NEVER).tolist()
        if root != component[0]:
            continue
        free = component[1:]
        laplacian = [[Fraction(int(graph[i].sum()) if i == j else -int(graph[i, j])) for j in free] for i in free]
        green = [[Fraction(0)] * len(component)] + [[Fraction(0), *row] for row in _inverse(laplacian)]
        for a, i in enumerate(component):
            for b, j in enumerate(component):
                out[i][j] = green[a][a] + green[b][b] - 2 * green[a][b]
    return out


def _inverse(matrix: list[list[Fraction]]) -> list[list[Fraction]]:
    """Gauss-Jordan; a grounded Laplacian is positive definite, so that no pivot is zero."""
    n = len(matrix)
    rows = [row + [Fraction(int(i == j)) for j in range(n)] for i, row in enumerate(matrix)]
    for p in range(n):
        scale = 1 / rows[p][p]
        rows[p] = [value * scale for value in rows[p]]
        for i in range(n):
            if i != p and (factor := rows[i][p]):
                rows[i] = [value - factor * lead for value, lead in zip(rows[i], rows[p], strict=True)]
    return [row[n:] for row in rows]


def common_degree(graphs: Iterable[Adjacency]) -> int:
    """The least common multiple of all degrees that are not 0."""
    return lcm(*(int(degree) for graph in graphs for degree in graph.sum(1) if degree))


def scaled_walks(graph: Adjacency, scale: int, walk_steps: int) -> Iterator[Exact]:
    """I, cM, (cM)², ..., K matrices of whole numbers: with c a multiple of all degrees, c^k keeps M^k = (D^-1 A)^k exact."""
    degree = graph.sum(1, keepdims=True)
    number_type = np.int64 if scale**walk_steps < 2**63 else object  # rows of (cM)^k sum to c^k at most
    step = (graph * (scale // np.maximum(degree, 1))).astype(number_type)
    power = np.eye(len(graph), dtype=np.int64).astype(number_type)
    for k in range(walk_steps):
        yield power
        if k + 1 < walk_steps:
            power = step @ power


# --- refinement --------------------------------------------------------------------------------------------------------


def refine(colourings: Sequence[Colouring]) -> list[list[int]]:
    """Stable GD-WL colours of the nodes, for all graphs together.

    All nodes begin alike, and hence classes only ever split: as many classes as before are the same classes.
    """
    colours = [[0] * len(colouring) for colouring in colourings]
    classes = 0
    while True:
        number: Numbering[Hashable] = Numbering()
        colours = [
            [number[tuple(sorted(zip(row, colour, strict=True)))] for row in rows]
            for colour, rows in zip(colours, colourings, strict=True)
        ]
        if len(number) == classes:
            return colours
        classes = len(number)


def classify(labels: Iterable[Iterable[int]]) -> list[int]:
    """The class of each graph, given colours of its nodes (or pairs): graphs with the same multiset share one."""
    number: Numbering[Hashable] = Numbering()
    return [number[tuple(sorted(label))] for label in labels]


def gdwl(graphs: Sequence[Adjacency], distance: Distance) -> list[int]:
    """The GD-WL class of each graph: equal for graphs that the test cannot tell apart."""
    return classify(refine(distance(graphs)))


def return_classes(graphs: Sequence[Adjacency], walk_steps: int) -> list[int]:
    """The class of each graph under the multiset of its nodes' RWSE, the diagonal of RRWP."""
    return classify(_diagonals(walks(walk_steps)(graphs)))


def _diagonals(colourings: Iterable[Colouring]) -> list[list[int]]:
    return [[row[v] for v, row in enumerate(colouring)] for colouring in colourings]


def folklore(graphs: Sequence[Adjacency]) -> list[int]:
    """The class of each graph under the 2-dimensional folklore WL test (2-FWL), which colours ordered pairs.

    χ_t(v, u) = hash( χ_{t-1}(v, u), {{ (χ_{t-1}(v, w), χ_{t-1}(w, u)) : w ∈ V }} )
    """
    pairs = edges(graphs)
    classes = 0
    while True:
        number: Numbering[Hashable] = Numbering()
        pairs = [_folklore_step(colouring, number) for colouring in pairs]
        if len(number) == classes:
            return classify([colour for row in colouring for colour in row] for colouring in pairs)
        classes = len(number)


def _folklore_step(colouring: Colouring, number: Numbering[Any]) -> Colouring:
    columns = list(zip(*colouring, strict=True))
    return [
        [number[row[u], tuple(sorted(zip(row, columns[u], strict=True)))] for u in range(len(row))] for row in colouring
    ]


# --- questions ---------------------------------------------------------------------------------------------------------


def least_walk_steps(graphs: Sequence[Adjacency]) -> int | None:
    """The least K with which GD-WL on RRWP tells the graphs all apart; None if K = n, the paper's choice, does not."""
    colourings = _walk_colourings(graphs, max(map(len, graphs)))
    return _first_with_all_apart(classify(refine(colouring)) for colouring in colourings)


def least_return_steps(graphs: Sequence[Adjacency]) -> int | None:
    """The least K with which the multisets of RWSE differ; None if they agree up to K = n + 1, and hence for every K.

    By Cayley-Hamilton the powers up to M^n decide all others.
    """
    colourings = _walk_colourings(graphs, max(map(len, graphs)) + 1)
    return _first_with_all_apart(classify(_diagonals(colouring)) for colouring in colourings)


def _first_with_all_apart(classes: Iterable[list[int]]) -> int | None:
    return next((k for k, labels in enumerate(classes, 1) if len(set(labels)) == len(labels)), None)


def undistinguished(classes: Sequence[int]) -> int:
    """How many pairs of graphs share a class."""
    return sum(comb(size, 2) for size in Counter(classes).values())


def is_finer(fine: Sequence[Hashable], coarse: Sequence[Hashable]) -> bool:
    """Whether things of the same class in ``fine`` always have the same class in ``coarse``."""
    return len(set(zip(fine, coarse, strict=True))) == len(set(fine))
