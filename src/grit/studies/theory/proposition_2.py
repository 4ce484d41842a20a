"""Proposition 2 of the paper: GD-WL with RRWP is strictly stronger than GD-WL with shortest paths; and what it needs."""

from itertools import chain

import networkx as nx
import numpy as np

from grit.studies.theory.checks import Check
from grit.studies.theory.gdwl import (
    NEVER,
    Adjacency,
    Distance,
    common_degree,
    full_walks,
    gdwl,
    is_finer,
    least_return_steps,
    least_walk_steps,
    path_lengths,
    refine,
    scaled_walks,
    shortest_paths,
    walks,
)
from grit.studies.theory.hard_graphs import atlas, witness_pairs


def check_refinement(max_nodes: int) -> list[Check]:
    """RRWP with K = n is at least as strong, on every graph with up to ``max_nodes`` nodes."""
    graphs = atlas(max_nodes)
    first = sum(bool((_first_walk(graph) == path_lengths(graph)).all()) for graph in graphs)
    by_walks, by_paths = refine(full_walks(graphs)), refine(shortest_paths(graphs))
    nodes = is_finer(list(chain.from_iterable(by_walks)), list(chain.from_iterable(by_paths)))
    classes = is_finer(gdwl(graphs, full_walks), gdwl(graphs, shortest_paths))
    short = is_finer(gdwl(graphs, walks(2)), gdwl(graphs, shortest_paths))
    where = f"all {len(graphs):,} graphs with 2..{max_nodes} nodes"
    count = f"{first:,}/{len(graphs):,}"
    return [
        Check(f"SPD is the first channel of RRWP that is not 0; {where}", count, "all", first == len(graphs)),
        Check(f"RRWP's node colours refine SPD's; {where}", nodes, "yes", nodes),
        Check(f"RRWP tells graphs apart wherever SPD does; {where}", classes, "yes", classes),
        Check("the same with K=2 in place of K=n", short, "no: K=2 is 1-WL", short, should_hold=False),
    ]


def _first_walk(graph: Adjacency) -> Adjacency:
    """The least number of steps that lead from i to j, up to n - 1; `NEVER` where none does."""
    reached = np.stack(list(scaled_walks(graph, common_degree([graph]), len(graph)))) != 0  # (K, n, n)
    return np.where(reached.any(0), reached.argmax(0), NEVER)


def check_witnesses() -> list[Check]:
    """Strictly stronger by the paper's pair, and the limits: walks that are too short, graphs that no walk tells apart."""
    pairs = witness_pairs()
    paper, ladder = pairs["Dodecahedron / Desargues"], pairs["Möbius ladder 16 / prism 8"]
    cospectral, strongly_regular = pairs["Q4 / Hoffman"], pairs["Shrikhande / rook 4x4"]
    arrays = [nx.intersection_array(nx.from_numpy_array(graph)) for graph in paper]
    spd, rrwp, least = _apart(paper, shortest_paths), _apart(paper, full_walks), least_walk_steps(paper)
    zeros = {k: [int((np.linalg.matrix_power(graph, k) == 0).sum()) for graph in paper] for k in (3, 5)}
    name = "Dodecahedron / Desargues"
    short = _apart(ladder, walks(4)) or not _apart(ladder, shortest_paths)
    returns = least_return_steps(cospectral) is not None or not _apart(cospectral, shortest_paths)
    both = least_walk_steps(cospectral)
    blind = _apart(strongly_regular, full_walks)
    return [
        Check(f"SPD does not tell {name} apart", not spd, "yes", not spd),
        Check(f"RRWP with K=n tells {name} apart", rrwp, "yes", rrwp),
        Check(
            "pairs of nodes without a walk of 5 steps: none / many",
            f"{zeros[5][0]} / {zeros[5][1]}",
            "0 / 200",
            zeros[5] == [0, 200],
        ),
        Check(
            "walks of 5 steps are needed for it",
            f"K={least}; without a walk of 3: {zeros[3][0]} / {zeros[3][1]}",
            "no: 3 steps do, K=4; 100 / 220",
            least is not None and least > 5,
            should_hold=False,
        ),
        Check("both are distance-regular, with other arrays", f"{arrays}", "differ", arrays[0] != arrays[1]),
        Check(
            "RRWP with any K is as strong as SPD (Möbius ladder 16 / prism 8, K=4)",
            "K=4 misses them, SPD does not" if not short else "K=4 does not miss them",
            "no: K=5 is needed",
            short,
            should_hold=False,
        ),
        Check(
            "RWSE, the diagonal alone, is as strong as SPD (Q4 / Hoffman)",
            f"RWSE misses them for every K, RRWP from K={both} does not" if not returns else "RWSE does not miss them",
            "no; RRWP from K=3",
            returns,
            should_hold=False,
        ),
        Check(
            "RRWP tells all graphs apart that are not isomorphic (Shrikhande / rook 4x4)",
            blind,
            "no, for no K",
            blind,
            should_hold=False,
        ),
    ]


def _apart(pair: tuple[Adjacency, Adjacency], distance: Distance) -> bool:
    return len(set(gdwl(pair, distance))) == 2
