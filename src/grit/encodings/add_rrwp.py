"""RRWP as a PyG transform; a file to itself, so that what needs RRWP alone does not load PyG."""

import torch
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from grit.encodings.encoding import check_walk_steps
from grit.encodings.rrwp import log_degree, rrwp_encoding
from grit.graphs.convert import pack
from grit.graphs.pairs import choose_pairs


class AddRRWP(BaseTransform):  # type: ignore[misc]
    """PyG transform that attaches RRWP under the names of the released code.

    Adds to a copy of the graph: ``rrwp`` (n, K), the diagonal; ``rrwp_index`` (2, Q) and ``rrwp_val`` (Q, K), the pairs
    (i, j) that some walk joins, listed by (i, j) and stored with row 0 = j (the walk's end) and row 1 = i (its start);
    ``deg`` (n,) and ``log_deg`` (n,), the out-degree d and ln(1 + d). `PairBatch` reads them back if its walk_steps agree,
    and refuses values that are not those of the present edges: apply this transform after those that change the graph.

    ``edge_weight`` is read if the graph has it: the walk is weighted and d the sum of the weights, in ``deg`` without its
    fraction.

    Args:
        walk_steps: K, the number of channels: I, M, ..., M^(K-1).
    """

    def __init__(self, walk_steps: int = 21) -> None:
        self.walk_steps = check_walk_steps(walk_steps)

    def forward(self, data: Data) -> Data:
        """The graph with its encodings; the one given is not changed (PyG copies it before calling)."""
        graphs = pack([data])
        pairs = choose_pairs(graphs, bytes_per_pair=self.walk_steps * torch.float32.itemsize)
        encoding = rrwp_encoding(graphs, pairs, self.walk_steps, torch.float32)
        joined = (encoding.pair != 0).any(1)
        data.rrwp = encoding.node
        data.rrwp_index = torch.stack([pairs.key[joined], pairs.query[joined]])
        data.rrwp_val = encoding.pair[joined]
        degree = graphs.weighted_degree(torch.float32)
        data.deg = degree.long()
        data.log_deg = log_degree(degree)
        return data

    def __repr__(self) -> str:
        return f"AddRRWP(walk_steps={self.walk_steps})"
