"""Cycle counts, the structural identifiers of GSN (Bouritsas et al. 2022): how many cycles of each length run through what.

Directions, self-loops, parallel edges and ``edge_weight`` are ignored. Cycles may have chords: a cycle is any closed walk that
meets no node twice.

Shape letters: N nodes of the batch, P pairs, K the longest cycle.
"""

import torch

from grit.encodings.encoding import Encoding
from grit.encodings.structures.cycles import CYCLES, SHORTEST
from grit.encodings.structures.structure import compute_structure
from grit.graphs.packed import PackedGraphs
from grit.graphs.pairs import Pairs


def cycle_lengths(walk_steps: int) -> int:
    """Number of lengths from 3 to ``walk_steps``."""
    return max(walk_steps - SHORTEST + 1, 0)


def cycles_encoding(graphs: PackedGraphs, pairs: Pairs, walk_steps: int, dtype: torch.dtype) -> Encoding:
    """Numbers of cycles with 3, 4, ..., ``walk_steps`` = K nodes.

    Node part (N, K - 2): cycles through the node. Pair part (P, K - 2): cycles on which i and j are neighbours; 0 for pairs
    that are not joined by an edge. Both have width 0 if K < 3. Counts of a graph are kept from one batch to the next.
    """
    width = cycle_lengths(walk_steps)
    found = compute_structure(graphs, "cycles", CYCLES, walk_steps, dtype).parts
    nodes = torch.zeros(graphs.num_nodes, width, dtype=dtype, device=graphs.x.device)
    node, place, count = found["node"]
    nodes[node, place] = count.to(dtype)
    of_pairs = torch.zeros(pairs.num_pairs, width, dtype=dtype, device=graphs.x.device)
    query, key, place, count = found["pair"]
    at = pairs.find(query, key)
    listed = at >= 0  # of a directed edge, sparse attention has one direction only
    of_pairs[at[listed], place[listed]] = count[listed].to(dtype)
    return Encoding(node=nodes, pair=of_pairs)
