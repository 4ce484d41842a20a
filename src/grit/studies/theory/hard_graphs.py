"""Graphs that are hard to tell apart, built from their definitions: no list of edges is stored.

Graphs are symmetric 0/1 matrices without self-loops, (n, n).
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, product

import networkx as nx
import numpy as np

from grit.studies.theory.gdwl import Adjacency, Colouring, gdwl

CSL_SKIPS = (2, 3, 4, 5, 6, 9, 11, 12, 13, 16)  # one of each isomorphism class of CSL(41, R)


def matrix(graph: nx.Graph) -> Adjacency:
    """The adjacency matrix of a NetworkX graph."""
    adjacency: Adjacency = nx.to_numpy_array(graph, dtype=np.int64)
    return adjacency


def witness_pairs() -> dict[str, tuple[Adjacency, Adjacency]]:
    """Pairs of graphs that are not isomorphic, and that no 1-WL test tells apart."""
    triangular = _triangular_8()
    chang = [switch(triangular, nodes) for nodes in _chang_sets()]
    pairs = {
        "Dodecahedron / Desargues": (matrix(nx.dodecahedral_graph()), matrix(nx.desargues_graph())),
        "triangular prism / K3,3": (_prism(3), matrix(nx.complete_bipartite_graph(3, 3))),
        "C6 / 2 C3": (_cycles(6), _cycles(3, 3)),
        "C8 / 2 C4": (_cycles(8), _cycles(4, 4)),
        "decalin / bicyclopentyl": (_decalin(), _bicyclopentyl()),
        "Möbius ladder 16 / prism 8": (_moebius_ladder(8), _prism(8)),
        "cube / Wagner": (matrix(nx.hypercube_graph(3)), _moebius_ladder(4)),
        "Pappus / prism 9": (matrix(nx.pappus_graph()), _prism(9)),
        "Möbius-Kantor / prism 8": (matrix(nx.moebius_kantor_graph()), _prism(8)),
        "Q4 / Hoffman": (matrix(nx.hypercube_graph(4)), _hoffman()),
        "Shrikhande / rook 4x4": (_shrikhande(), matrix(nx.line_graph(nx.complete_bipartite_graph(4, 4)))),
    }
    return pairs | {f"T(8) / Chang {c}": (triangular, graph) for c, graph in enumerate(chang, 1)}


def csl_graphs() -> list[Adjacency]:
    """The circular skip links CSL(41, R): a cycle of 41 nodes, and chords that skip R."""
    return [matrix(nx.circulant_graph(41, [1, skip])) for skip in CSL_SKIPS]


def atlas(max_nodes: int) -> list[Adjacency]:
    """All graphs with 2 to ``max_nodes`` nodes, at most 7."""
    return [matrix(graph) for graph in nx.graph_atlas_g() if 2 <= len(graph) <= max_nodes]


def switch(graph: Adjacency, nodes: Iterable[int]) -> Adjacency:
    """Seidel switching: what joins ``nodes`` with the others becomes its complement."""
    inside = np.zeros(len(graph), dtype=bool)
    inside[list(nodes)] = True
    across = inside[:, None] != inside[None, :]
    return np.where(across, 1 - graph, graph)


def srg_parameters(graph: Adjacency) -> tuple[int, int, int, int] | None:
    """(v, k, λ, μ) of a strongly regular graph; None of any other."""
    n, degree = len(graph), graph.sum(1)
    common = graph @ graph
    off_diagonal = ~np.eye(n, dtype=bool)
    values = [np.unique(degree), np.unique(common[graph == 1]), np.unique(common[(graph == 0) & off_diagonal])]
    if any(len(value) != 1 for value in values):
        return None
    return n, int(values[0][0]), int(values[1][0]), int(values[2][0])


# --- single graphs -----------------------------------------------------------------------------------------------------


def _cycles(*lengths: int) -> Adjacency:
    return matrix(nx.disjoint_union_all([nx.cycle_graph(length) for length in lengths]))


def _prism(sides: int) -> Adjacency:
    return matrix(nx.cartesian_product(nx.cycle_graph(sides), nx.path_graph(2)))


def _moebius_ladder(rungs: int) -> Adjacency:
    return matrix(nx.circulant_graph(2 * rungs, [1, rungs]))


def _decalin() -> Adjacency:
    """Two rings of six that share an edge."""
    graph = nx.cycle_graph(10)
    graph.add_edge(0, 5)
    return matrix(graph)


def _bicyclopentyl() -> Adjacency:
    """Two rings of five, joined by an edge."""
    graph = nx.disjoint_union(nx.cycle_graph(5), nx.cycle_graph(5))
    graph.add_edge(0, 5)
    return matrix(graph)


def _hoffman() -> Adjacency:
    """The cospectral mate of the 4-cube, by Godsil-McKay switching.

    The four neighbours of a node w form a set with no edges inside, to which every other node has 0, 2 or 4
    neighbours; those with 2 exchange them for the other two.
    """
    graph = matrix(nx.hypercube_graph(4))
    chosen = np.flatnonzero(graph[0])
    half = np.flatnonzero(graph[:, chosen].sum(1) == 2)
    block = np.ix_(half, chosen)
    graph[block] = 1 - graph[block]
    graph[np.ix_(chosen, half)] = graph[block].T
    return graph


def _shrikhande() -> Adjacency:
    """Z4 x Z4, joined where the difference is ±(0, 1), ±(1, 0) or ±(1, 1)."""
    return _cayley(list(product(range(4), repeat=2)), {(0, 1), (0, 3), (1, 0), (3, 0), (1, 1), (3, 3)}, 4)


def _cayley(points: Sequence[tuple[int, ...]], steps: set[tuple[int, int]], modulus: int) -> Adjacency:
    joined = [[((a - c) % modulus, (b - d) % modulus) in steps for c, d in points] for a, b in points]
    return np.array(joined, dtype=np.int64)


def _triangular_8() -> Adjacency:
    """T(8): the 28 pairs out of 8, joined where they share a member."""
    return _meeting(list(combinations(range(8), 2)))


def _meeting(sets: Sequence[tuple[int, ...]]) -> Adjacency:
    """Sets, joined where they have exactly one member in common."""
    return np.array([[len(set(a) & set(b)) == 1 for b in sets] for a in sets], dtype=np.int64)


def _chang_sets() -> Iterator[list[int]]:
    """Nodes of T(8), read as edges on 8 points, by which it is switched to the Chang graphs: 4 K2, C3 + C5, C8."""
    number = {pair: node for node, pair in enumerate(combinations(range(8), 2))}
    matching = [(0, 1), (2, 3), (4, 5), (6, 7)]
    triangle_and_pentagon = [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (5, 6), (6, 7), (3, 7)]
    octagon = [*((i, i + 1) for i in range(7)), (0, 7)]
    for pairs in (matching, triangle_and_pentagon, octagon):
        yield [number[pair] for pair in pairs]


# --- families ----------------------------------------------------------------------------------------------------------


def srg_25_12_5_6() -> list[Adjacency]:
    """Strongly regular graphs (25, 12, 5, 6), pairwise not isomorphic.

    They come from regular two-graphs on 26 points: a graph on 26 nodes is switched so that one node is isolated, and what
    is left is strongly regular. The graphs to start from are the Paley graph over GF(25), the graphs of two Latin
    squares of order 5, all with a further isolated node, and the block graphs of two Steiner triple systems on 13 points.
    Two results are taken for different only if `_neighbourhoods` proves it.
    """
    starts = [_with_isolated(graph) for graph in (_paley_25(), *map(_latin_graph, _latin_squares()))]
    starts += [_meeting(system) for system in _triple_systems()]
    found: list[Adjacency] = []
    for start in starts:
        for node in range(len(start)):
            isolated = switch(start, np.flatnonzero(start[node]))
            found.append(np.delete(np.delete(isolated, node, 0), node, 1))
    assert all(srg_parameters(graph) == (25, 12, 5, 6) for graph in found)
    first = {label: g for g, label in reversed(list(enumerate(gdwl(found, _neighbourhoods))))}
    return [found[g] for g in sorted(first.values())]


def _with_isolated(graph: Adjacency) -> Adjacency:
    return np.pad(graph, (0, 1))


def _neighbourhoods(graphs: Sequence[Adjacency]) -> list[Colouring]:
    """Pairs coloured by adjacency and by the number of edges among their common neighbours: an invariant.

    Graphs that `gdwl` tells apart with it are not isomorphic.
    """
    colourings = []
    for graph in graphs:
        common = graph[:, None, :] * graph[None, :, :]  # (n, n, n): w is a neighbour of both u and v
        among = ((common @ graph) * common).sum(-1)  # (n, n): twice the edges among them
        colourings.append((3 * among + graph + 2 * np.eye(len(graph), dtype=np.int64)).tolist())
    return colourings


def _paley_25() -> Adjacency:
    """GF(25) = GF(5)[s] with s² = 2; elements are joined where their difference is a square."""
    elements = list(product(range(5), repeat=2))
    squares = {((a * a + 2 * b * b) % 5, 2 * a * b % 5) for a, b in elements} - {(0, 0)}
    return _cayley(elements, squares, 5)


def _latin_squares() -> list[list[list[int]]]:
    """The two main classes of order 5: that of the cyclic group, and one with a 2 x 2 subsquare."""
    cyclic = [[(i + j) % 5 for j in range(5)] for i in range(5)]
    other = [[0, 1, 2, 3, 4], [1, 0, 3, 4, 2], [2, 4, 0, 1, 3], [3, 2, 4, 0, 1], [4, 3, 1, 2, 0]]
    return [cyclic, other]


def _latin_graph(square: list[list[int]]) -> Adjacency:
    """The 25 cells, joined where they share row, column or symbol."""
    return _meeting([(i, 5 + j, 10 + square[i][j]) for i, j in product(range(5), repeat=2)])


def _triple_systems() -> list[list[tuple[int, ...]]]:
    """Two Steiner triple systems on 13 points: the cyclic one, and what a Pasch switch makes of it."""
    cyclic = [tuple(sorted((x + shift) % 13 for x in base)) for base in ((0, 1, 4), (0, 2, 7)) for shift in range(13)]
    return [cyclic, _pasch_switched(cyclic)]


def _pasch_switched(system: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Four triples abc, ade, fbd, fce on six points become their counterparts fbc, fde, abd, ace."""
    for four in combinations(system, 4):
        points = sorted({point for block in four for point in block})
        if len(points) == 6:
            a = points[0]
            f = next(p for p in points if all({a, p} - set(block) for block in four) and p != a)
            swapped = [tuple(sorted({a: f, f: a}.get(point, point) for point in block)) for block in four]
            return [block for block in system if block not in four] + swapped
    raise AssertionError("the cyclic system has Pasch configurations")


def connected_cubic_graphs(num_nodes: int) -> list[Adjacency]:
    """All connected 3-regular graphs, one of each isomorphism class.

    From a prism, edges (a, b), (c, d) are exchanged for (a, d), (c, b) in all ways until nothing new is found; any two
    connected graphs with the same degrees are joined by such exchanges through connected ones.
    """
    start = _prism(num_nodes // 2)
    known: dict[bytes, list[nx.Graph]] = {_walk_invariant(start): [nx.from_numpy_array(start)]}
    found, seen, todo = [start], {start.tobytes()}, [start]
    while todo:
        for graph in _exchanges(todo.pop()):
            if graph.tobytes() in seen:
                continue
            seen.add(graph.tobytes())
            as_networkx = nx.from_numpy_array(graph)
            alike = known.setdefault(_walk_invariant(graph), [])
            if nx.is_connected(as_networkx) and not any(nx.is_isomorphic(as_networkx, other) for other in alike):
                alike.append(as_networkx)
                found.append(graph)
                todo.append(graph)
    return found


def _exchanges(graph: Adjacency) -> Iterator[Adjacency]:
    listed = np.argwhere(np.triu(graph)).tolist()
    for (a, b), other in combinations(listed, 2):
        for c, d in (other, other[::-1]):
            if len({a, b, c, d}) == 4 and not graph[a, d] and not graph[c, b]:
                changed = graph.copy()
                for u, v, value in ((a, b, 0), (c, d, 0), (a, d, 1), (c, b, 1)):
                    changed[u, v] = changed[v, u] = value
                yield changed


def _walk_invariant(graph: Adjacency) -> bytes:
    """Sorted numbers of closed walks of up to 8 steps, the same for isomorphic graphs; sorts candidates into drawers."""
    powers = [np.linalg.matrix_power(graph, k).diagonal() for k in range(3, 9)]
    return np.array(sorted(zip(*powers, strict=True))).tobytes()
