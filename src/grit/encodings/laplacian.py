"""Laplacian encodings (LapPE): eigenvectors and eigenvalues of a Laplacian, normalised or not.

    laplacian               L = D^-1/2 (D - A) D^-1/2,     L u_m = λ_m u_m,     0 <= λ_1 <= λ_2 <= ... <= 2
    laplacian-unnormalised  L = D - A,                     L u_m = λ_m u_m,     0 <= λ_1 <= λ_2 <= ...

with A made symmetric: i and j are joined if either edge is listed. A node without edges has a zero row and column, an
eigenvalue 0 of its own, as any other component.

Eigenvectors have length 1 and their entry of largest magnitude is positive. They remain a choice: a graph with symmetries
has no encoding by eigenvectors that renumbering its nodes only renumbers, and where eigenvalues coincide any basis of the
eigenspace is as good. Projections U Uᵀ on whole eigenspaces are free of that choice.

Shape letters: N nodes of the batch, P pairs, K frequencies, G graphs with n nodes each.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from grit.encodings.adjacency import adjacency_by_size, sign_of_largest
from grit.encodings.encoding import Encoding
from grit.graphs.packed import PackedGraphs
from grit.graphs.pairs import Pairs


def laplacian_encoding(graphs: PackedGraphs, pairs: Pairs, walk_steps: int, dtype: torch.dtype) -> Encoding:
    """The ``walk_steps`` = K lowest frequencies, node part (N, 2K): u_1..u_K at the node, then λ_1..λ_K of its graph.

    The trivial pair (λ_1 = 0, u_1 ~ the square roots of the degrees) is the first of the K and is kept, as in SAN: in a
    graph of several components it is not one vector that could be dropped. Graphs with fewer than K nodes have zeros for
    the frequencies that they lack. Pairs have width 0. ``edge_weight`` is ignored.
    """
    return _eigenvectors(graphs, pairs, walk_steps, dtype, normalised_laplacian)


def unnormalised_laplacian_encoding(
    graphs: PackedGraphs, pairs: Pairs, walk_steps: int, dtype: torch.dtype
) -> Encoding:
    """As `laplacian_encoding`, of L = D - A, which GPS and DGN take: the trivial u_1 of a connected graph is constant."""
    return _eigenvectors(graphs, pairs, walk_steps, dtype, unnormalised_laplacian)


def _eigenvectors(
    graphs: PackedGraphs, pairs: Pairs, walk_steps: int, dtype: torch.dtype, laplacian: Callable[[Tensor], Tensor]
) -> Encoding:
    node = torch.zeros(graphs.num_nodes, 2, walk_steps, dtype=dtype, device=graphs.x.device)
    for nodes, adjacency in adjacency_by_size(graphs):
        values, vectors = torch.linalg.eigh(laplacian(adjacency))  # (G, n), (G, n, n)
        vectors = vectors * sign_of_largest(vectors)
        kept = min(walk_steps, nodes.shape[1])
        node[nodes, 0, :kept] = vectors[:, :, :kept].to(dtype)
        node[nodes, 1, :kept] = values[:, None, :kept].expand(-1, nodes.shape[1], -1).to(dtype)
    return Encoding(node=node.flatten(1), pair=node.new_zeros(pairs.num_pairs, 0))


def normalised_laplacian(adjacency: Tensor) -> Tensor:
    """D^-1/2 (D - A) D^-1/2 of each adjacency matrix, made symmetric: (..., n, n) -> (..., n, n)."""
    degree = torch.maximum(adjacency, adjacency.mT).sum(-1)  # (..., n)
    scale = torch.where(degree > 0, degree.rsqrt(), 0.0)
    return scale.unsqueeze(-1) * unnormalised_laplacian(adjacency) * scale.unsqueeze(-2)


def unnormalised_laplacian(adjacency: Tensor) -> Tensor:
    """D - A of each adjacency matrix, made symmetric: (..., n, n) -> (..., n, n)."""
    joined = torch.maximum(adjacency, adjacency.mT)
    return torch.diag_embed(joined.sum(-1)) - joined
