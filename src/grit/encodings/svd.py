"""Singular-value encoding (SVDPE) of EGT: the adjacency matrix as a product of node vectors, for directed graphs too.

    A = U Σ Vᵀ,     node i gets row i of U √Σ and of V √Σ

for the K largest singular values, so that the product of i's first half and j's second half is A_ij once K reaches the rank
of A. Each column of U has its entry of largest magnitude positive, and V follows; as with the Laplacian's eigenvectors, this
and the basis where singular values coincide remain a choice.

EGT's own code decomposes A + I, every node joined to itself: that is the entry ``svd-loops``.

Shape letters: N nodes of the batch, P pairs, K the number of singular values, G graphs with n nodes each.
"""

import torch

from grit.encodings.adjacency import adjacency_by_size, sign_of_largest
from grit.encodings.encoding import Encoding
from grit.graphs.packed import PackedGraphs
from grit.graphs.pairs import Pairs


def svd_encoding(graphs: PackedGraphs, pairs: Pairs, walk_steps: int, dtype: torch.dtype) -> Encoding:
    """Node part (N, 2K) with K = ``walk_steps``: rows of U √Σ, then rows of V √Σ; zeros beyond a graph's nodes.

    A is 0/1 without added self-loops, entry (i, j) for the listed edge i -> j; ``edge_weight`` is ignored. Pairs have width 0.
    """
    return _decompose(graphs, pairs, walk_steps, dtype, loops=False)


def svd_loops_encoding(graphs: PackedGraphs, pairs: Pairs, walk_steps: int, dtype: torch.dtype) -> Encoding:
    """As `svd_encoding`, of A with ones on its diagonal."""
    return _decompose(graphs, pairs, walk_steps, dtype, loops=True)


def _decompose(graphs: PackedGraphs, pairs: Pairs, walk_steps: int, dtype: torch.dtype, *, loops: bool) -> Encoding:
    node = torch.zeros(graphs.num_nodes, 2, walk_steps, dtype=dtype, device=graphs.x.device)
    for nodes, adjacency in adjacency_by_size(graphs):
        if loops:
            adjacency.diagonal(dim1=1, dim2=2).fill_(1.0)
        left, values, right = torch.linalg.svd(adjacency)  # A = left diag(values) right
        sign = sign_of_largest(left)  # (G, 1, n)
        root = values.sqrt().unsqueeze(1)  # (G, 1, n)
        kept = min(walk_steps, nodes.shape[1])
        node[nodes, 0, :kept] = (left * sign * root)[:, :, :kept].to(dtype)
        node[nodes, 1, :kept] = (right.mT * sign * root)[:, :, :kept].to(dtype)
    return Encoding(node=node.flatten(1), pair=node.new_zeros(pairs.num_pairs, 0))
