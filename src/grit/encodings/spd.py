"""Shortest-path distances (SPD) truncated at K, one-hot on pairs, nothing on nodes. A row of the paper's ablations."""

from dataclasses import replace

import torch

from grit.encodings.encoding import Encoding
from grit.encodings.rrwp import rrwp_encoding
from grit.graphs.packed import PackedGraphs
from grit.graphs.pairs import Pairs


def spd_encoding(graphs: PackedGraphs, pairs: Pairs, walk_steps: int, dtype: torch.dtype) -> Encoding:
    """One-hot of the distance from i to j, (P, K); all zero where it is K or more, or there is no way.

    The distance is the first channel of RRWP that is not zero, as in the released code. In float64, because a product
    of many small probabilities may vanish in float32. Distances count edges; ``edge_weight`` is ignored.
    """
    unweighted = replace(graphs, edge_weight=None)
    reachable = rrwp_encoding(unweighted, pairs, walk_steps, torch.float64).pair != 0  # (P, K)
    first = reachable & (reachable.cumsum(1) == 1)
    return Encoding(node=torch.zeros(graphs.num_nodes, 0, dtype=dtype, device=first.device), pair=first.to(dtype))
