"""No encoding at all: the model sees features and, through the edge features, which pairs are edges."""

import torch

from grit.encodings.encoding import Encoding
from grit.graphs.packed import PackedGraphs
from grit.graphs.pairs import Pairs


def no_encoding(graphs: PackedGraphs, pairs: Pairs, walk_steps: int, dtype: torch.dtype) -> Encoding:
    """Node and pair parts of width 0."""
    empty = torch.zeros(0, 0, dtype=dtype, device=graphs.x.device)
    return Encoding(node=empty.new_zeros(graphs.num_nodes, 0), pair=empty.new_zeros(pairs.num_pairs, 0))
