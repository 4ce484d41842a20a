"""Relative random walk probabilities (RRWP), Section 3.1 of the paper.

With ``M = D^-1 A`` the walk matrix of a graph, ``P_ij = [I, M, M^2, ..., M^(K-1)]_ij``: entry k is the probability
that a walk of k steps from i ends in j. Computed by sparse-dense products, O(K V E), for all graphs of a batch at once,
and never stored on disk.

As in the released code: the degree counts every listed edge, parallel ones too, while a parallel edge is one way to
step, so that rows of nodes with parallel edges sum to less than 1. A node without outgoing edges has a zero row.

Shape letters: N nodes of the batch, P pairs, E edges, K walk steps.
"""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from grit.encodings.encoding import Encoding, check_walk_steps
from grit.errors import GritError
from grit.graphs.convert import pack
from grit.graphs.packed import PackedGraphs, offsets
from grit.graphs.pairs import Pairs, choose_pairs
from grit.kernels.walks import walk_powers, walks_are_fused


def rrwp(edge_index: Tensor, num_nodes: int, walk_steps: int, *, dtype: torch.dtype = torch.float32) -> Tensor:
    """RRWP of one graph as a dense tensor.

    Args:
        edge_index: (2, E) int64, row 0 the source. Undirected graphs list both directions.
        num_nodes: n.
        walk_steps: K, the number of channels: I, M, ..., M^(K-1).
        dtype: float32 or float64.

    Returns:
        (n, n, K); entry [i, j, k] is the probability of going from i to j in k steps.
    """
    if num_nodes < 1:
        raise GritError(f"num_nodes must be at least 1, got {num_nodes}.")
    check_walk_steps(walk_steps)
    graphs = pack([Data(edge_index=edge_index, num_nodes=num_nodes)])
    encoding = rrwp_encoding(graphs, choose_pairs(graphs), walk_steps, dtype)
    return encoding.pair.view(num_nodes, num_nodes, walk_steps)


def rrwp_encoding(graphs: PackedGraphs, pairs: Pairs, walk_steps: int, dtype: torch.dtype) -> Encoding:
    """RRWP of a batch: the diagonal for nodes (N, K), the given pairs for pairs (P, K)."""
    if walks_are_fused(graphs.x.device, dtype) and pairs.num_pairs == int((graphs.nodes_per_graph**2).sum()):
        return Encoding(*walk_powers(graphs, walk_steps, dtype))
    node = torch.zeros(walk_steps, graphs.num_nodes, dtype=dtype, device=graphs.x.device)
    pair = torch.zeros(walk_steps, pairs.num_pairs, dtype=dtype, device=graphs.x.device)
    for group in _groups_of_like_size(graphs):
        _walk(graphs, pairs, group, node, pair)
    return Encoding(node=node.t().contiguous(), pair=pair.t().contiguous())  # (N, K), (P, K)


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
def _walk(graphs: PackedGraphs, pairs: Pairs, group: Tensor, node: Tensor, pair: Tensor) -> None:
    """Fill the columns of ``node`` (K, N) and ``pair`` (K, P) that belong to the graphs in ``group``.

    Rows of the working matrix are the group's nodes i, columns the number of j within its own graph.
    """
    graph_of_node = graphs.graph_of_node
    in_group = torch.zeros(len(graphs), dtype=torch.bool, device=group.device)
    in_group[group] = True
    nodes = in_group[graph_of_node].nonzero()[:, 0]  # (R,)
    row_of = torch.full((graphs.num_nodes,), -1, device=group.device)
    row_of[nodes] = torch.arange(nodes.numel(), device=group.device)
    column_of = torch.arange(graphs.num_nodes, device=group.device) - graphs.node_ptr[graph_of_node]
    num_rows, num_columns = nodes.numel(), int(graphs.nodes_per_graph[group].max())

    # M in compressed rows: each distinct edge once, weighted by the degree that counts them all.
    source, target = row_of[graphs.edge_index]
    kept = source >= 0
    code = torch.unique(source[kept] * num_rows + target[kept])
    source, target = code // num_rows, code % num_rows
    row_start = offsets(torch.bincount(source, minlength=num_rows))[:-1]
    probability = (1.0 / graphs.degree()[nodes].to(node.dtype))[source]

    of_group = (row_of[pairs.query] >= 0).nonzero()[:, 0]
    cell = row_of[pairs.query[of_group]] * num_columns + column_of[pairs.key[of_group]]
    everything = of_group.numel() == pairs.num_pairs
    walk = torch.zeros(num_rows, num_columns, dtype=node.dtype, device=group.device)
    walk[torch.arange(num_rows, device=group.device), column_of[nodes]] = 1.0  # M^0
    diagonal = torch.arange(num_rows, device=group.device) * num_columns + column_of[nodes]
    for k in range(node.shape[0]):
        node[k, nodes] = walk.view(-1)[diagonal]
        if everything:
            torch.index_select(walk.view(-1), 0, cell, out=pair[k])
        else:
            pair[k, of_group] = walk.view(-1)[cell]
        if k + 1 < node.shape[0] and code.numel():
            # The sparse-dense product M @ walk: each row is a weighted sum of its neighbours' rows.
            walk = F.embedding_bag(target, walk, row_start, mode="sum", per_sample_weights=probability)
        elif k == 0:
            walk = torch.zeros_like(walk)


class AddRRWP(BaseTransform):  # type: ignore[misc]
    """PyG transform that attaches RRWP under the names of the released code.

    Adds to a copy of the graph: ``rrwp`` (n, K), the diagonal; ``rrwp_index`` (2, Q) and ``rrwp_val`` (Q, K), the pairs
    (i, j) that some walk joins, listed by (i, j) and stored with row 0 = j (the walk's end) and row 1 = i (its start);
    ``deg`` (n,) and ``log_deg`` (n,), the out-degree d and ln(1 + d). `PairBatch` reads them back if its walk_steps agree.

    Args:
        walk_steps: K, the number of channels: I, M, ..., M^(K-1).
    """

    def __init__(self, walk_steps: int = 21) -> None:
        self.walk_steps = check_walk_steps(walk_steps)

    def forward(self, data: Data) -> Data:
        """The graph with its encodings; the one given is not changed (PyG copies it before calling)."""
        graphs = pack([data])
        pairs = choose_pairs(graphs)
        encoding = rrwp_encoding(graphs, pairs, self.walk_steps, torch.float32)
        joined = (encoding.pair != 0).any(1)
        data.rrwp = encoding.node
        data.rrwp_index = torch.stack([pairs.key[joined], pairs.query[joined]])
        data.rrwp_val = encoding.pair[joined]
        data.deg = graphs.degree()
        data.log_deg = log_degree(data.deg, torch.float32)
        return data

    def __repr__(self) -> str:
        return f"AddRRWP(walk_steps={self.walk_steps})"


def log_degree(degree: Tensor, dtype: torch.dtype) -> Tensor:
    """ln(1 + d), computed in ``dtype`` as the released code does (float32)."""
    return torch.log(degree.to(dtype) + 1)
