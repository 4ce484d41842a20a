"""Random-walk structural encoding (RWSE): the diagonal of RRWP, nothing on pairs. A row of the paper's ablations."""

import torch

from grit.encodings.encoding import Encoding
from grit.encodings.rrwp import rrwp_encoding
from grit.graphs.packed import PackedGraphs
from grit.graphs.pairs import Pairs, choose_pairs


def rwse_encoding(graphs: PackedGraphs, pairs: Pairs, walk_steps: int, dtype: torch.dtype) -> Encoding:
    """Return probabilities [1, M_ii, ..., M^(K-1)_ii] of every node, (N, K), and pairs of width 0.

    The walk is that of RRWP, weighted if the graphs have ``edge_weight``.
    """
    diagonal = rrwp_encoding(graphs, choose_pairs(graphs, "edges"), walk_steps, dtype).node
    return Encoding(node=diagonal, pair=diagonal.new_zeros(pairs.num_pairs, 0))
