"""Relative random walk probabilities (RRWP), Section 3.1 of the paper.

With ``M = D^-1 A`` the walk matrix of a graph, ``P_ij = [I, M, M^2, ..., M^(K-1)]_ij``: entry k is the probability
that a walk of k steps from i ends in j. Computed by sparse-dense products, O(K V E), for all graphs of a batch at once,
and never stored on disk. Column j of M^k depends on column j of M^(k-1) alone, so large graphs are worked on in blocks of
columns and no n x n matrix is made for sparse pairs.

As in the released code: the degree counts every listed edge, parallel ones too, while a parallel edge is one way to
step, so that rows of nodes with parallel edges sum to less than 1. A node without outgoing edges has a zero row. With edge
weights the degree is their sum and ``M_ij = w_ij / d_i``; of parallel edges the last one listed gives ``w_ij``.

Shape letters: N nodes of the batch, P pairs, E edges, K walk steps, Z entries of M.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from grit.encodings.encoding import Encoding, check_walk_steps
from grit.errors import GritError
from grit.graphs.convert import pack
from grit.graphs.packed import PackedGraphs, offsets
from grit.graphs.pairs import Pairs, choose_pairs
from grit.kernels.walks import walk_powers, walks_are_fused

LANES = 16  # columns of a block come in multiples of it
BLOCK_BYTES = 1 << 24  # of a working matrix; larger ones leave the cache and are no faster


def rrwp(
    edge_index: Tensor,
    num_nodes: int,
    walk_steps: int,
    edge_weight: Tensor | None = None,
    *,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """RRWP of one graph as a dense tensor.

    Args:
        edge_index: (2, E) int64, row 0 the source. Undirected graphs list both directions.
        num_nodes: n.
        walk_steps: K, the number of channels: I, M, ..., M^(K-1).
        edge_weight: (E,) or (E, 1), 0 or more: a step follows an edge with a probability in proportion. None weighs all alike.
        dtype: float32 or float64.

    Returns:
        (n, n, K); entry [i, j, k] is the probability of going from i to j in k steps.
    """
    from torch_geometric.data import Data

    if num_nodes < 1:
        raise GritError(f"num_nodes must be at least 1, got {num_nodes}.")
    check_walk_steps(walk_steps)
    graphs = pack([Data(edge_index=edge_index, edge_weight=edge_weight, num_nodes=num_nodes)])
    pairs = choose_pairs(graphs, bytes_per_pair=walk_steps * dtype.itemsize)
    encoding = rrwp_encoding(graphs, pairs, walk_steps, dtype)
    return encoding.pair.view(num_nodes, num_nodes, walk_steps)


def rrwp_encoding(graphs: PackedGraphs, pairs: Pairs, walk_steps: int, dtype: torch.dtype) -> Encoding:
    """RRWP of a batch: the diagonal for nodes (N, K), the given pairs for pairs (P, K)."""
    all_pairs = pairs.num_pairs == int((graphs.nodes_per_graph**2).sum())
    if all_pairs and graphs.edge_weight is None and walks_are_fused(graphs.x.device, dtype):
        return Encoding(*walk_powers(graphs, walk_steps, dtype))
    node = torch.empty(graphs.num_nodes, walk_steps, dtype=dtype, device=graphs.x.device)
    pair = torch.empty(pairs.num_pairs, walk_steps, dtype=dtype, device=graphs.x.device)
    matrix = walk_matrix(graphs, dtype)
    for group in _groups_of_like_size(graphs):
        _walk(graphs, matrix, pairs, group, node, pair)
    return Encoding(node=node, pair=pair)


class WalkMatrix(NamedTuple):
    """M of a batch by its entries, row by row, each (source, target) once.

    Attributes:
        source: (Z,) int64, the row, not decreasing.
        target: (Z,) int64, the column, increasing within a row.
        probability: (Z,).
    """

    source: Tensor
    target: Tensor
    probability: Tensor


def walk_matrix(graphs: PackedGraphs, dtype: torch.dtype) -> WalkMatrix:
    """M = D^-1 A of a batch."""
    source, target = graphs.edge_index
    code, order = torch.sort(source * graphs.num_nodes + target, stable=True)
    is_last = torch.ones_like(code, dtype=torch.bool)
    is_last[:-1] = code[1:] != code[:-1]
    listed = order[is_last]  # of parallel edges the last one
    source, target = source[listed], target[listed]
    weight = 1.0 if graphs.edge_weight is None else graphs.edge_weight[listed].to(dtype)
    degree = graphs.weighted_degree(dtype)[source]
    return WalkMatrix(source, target, torch.where(degree > 0, weight / degree, 0.0))


def _groups_of_like_size(graphs: PackedGraphs) -> Iterator[Tensor]:
    """Graphs that are worked on together, padded to the largest: all of them, unless that is mostly padding."""
    n = graphs.nodes_per_graph
    everything = torch.arange(len(graphs), device=n.device)
    if graphs.num_nodes * int(n.max()) <= 2 * int((n * n).sum()):
        yield everything
        return
    magnitude = torch.frexp(n.double()).exponent  # n in [2^(m-1), 2^m)
    for m in torch.unique(magnitude):
        yield everything[magnitude == m]


@torch.no_grad()
def _walk(graphs: PackedGraphs, matrix: WalkMatrix, pairs: Pairs, group: Tensor, node: Tensor, pair: Tensor) -> None:
    """Fill the rows of ``node`` (N, K) and ``pair`` (P, K) that belong to the graphs in ``group``.

    Rows of the working matrix are the group's nodes i, columns the number of j within its own graph, a block at a time.
    """
    device, dtype, walk_steps = node.device, node.dtype, node.shape[1]
    graph_of_node = graphs.graph_of_node
    in_group = torch.zeros(len(graphs), dtype=torch.bool, device=device)
    in_group[group] = True
    nodes = in_group[graph_of_node].nonzero()[:, 0]  # (R,)
    row_of = torch.full((graphs.num_nodes,), -1, device=device)
    row_of[nodes] = torch.arange(nodes.numel(), device=device)
    column_of = torch.arange(graphs.num_nodes, device=device) - graphs.node_ptr[graph_of_node]
    num_rows, num_columns = nodes.numel(), int(graphs.nodes_per_graph[group].max())

    # The group's part of M in compressed rows.
    kept = row_of[matrix.source] >= 0
    target, probability = row_of[matrix.target[kept]], matrix.probability[kept]
    row_start = offsets(torch.bincount(row_of[matrix.source[kept]], minlength=num_rows))[:-1]

    column_of_node, column_of_pair = column_of[nodes], column_of[pairs.key]
    of_group = row_of[pairs.query] >= 0
    width = LANES * max(1, BLOCK_BYTES // (LANES * num_rows * dtype.itemsize))
    for first in range(0, num_columns, width):
        last = min(first + width, num_columns)
        own = ((column_of_node >= first) & (column_of_node < last)).nonzero()[:, 0]  # rows whose diagonal is here
        wanted = (of_group & (column_of_pair >= first) & (column_of_pair < last)).nonzero()[:, 0]
        diagonal = own * (last - first) + column_of_node[own] - first
        cell = row_of[pairs.query[wanted]] * (last - first) + column_of_pair[wanted] - first
        node_block = torch.empty(walk_steps, own.numel(), dtype=dtype, device=device)
        pair_block = torch.empty(walk_steps, wanted.numel(), dtype=dtype, device=device)
        walk = torch.zeros(num_rows, last - first, dtype=dtype, device=device)
        walk.view(-1)[diagonal] = 1.0  # M^0
        for k in range(walk_steps):
            torch.index_select(walk.view(-1), 0, diagonal, out=node_block[k])
            torch.index_select(walk.view(-1), 0, cell, out=pair_block[k])
            if k + 1 < walk_steps and target.numel():
                # The sparse-dense product M @ walk: each row is a weighted sum of its neighbours' rows.
                walk = F.embedding_bag(target, walk, row_start, mode="sum", per_sample_weights=probability)
            elif k == 0:
                walk = torch.zeros_like(walk)
        node[nodes[own]] = node_block.t()
        if wanted.numel() == pairs.num_pairs:
            pair.copy_(pair_block.t())
        else:
            pair[wanted] = pair_block.t()


def log_degree(degree: Tensor) -> Tensor:
    """ln(1 + d), computed in the type of d as the released code does (float32)."""
    return torch.log(degree + 1)
