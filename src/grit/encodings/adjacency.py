"""Dense adjacency matrices of packed graphs, for the encodings that decompose a matrix.

Graphs with the same number of nodes are stacked, so that nothing is padded.

Shape letters: N nodes of the batch, E edges, G graphs with n nodes each.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from grit.graphs.packed import PackedGraphs


def adjacency_by_size(graphs: PackedGraphs) -> Iterator[tuple[Tensor, Tensor]]:
    """For every size n that occurs: ``nodes`` (G, n), where the graphs' nodes stand in the batch, and ``adjacency`` (G, n, n).

    Entry [g, i, j] is 1 where the edge i -> j is listed, parallel edges counted once, and 0 elsewhere; float64.
    """
    sizes, device = graphs.nodes_per_graph, graphs.x.device
    graph_of_edge = graphs.graph_of_node[graphs.edge_index[0]]  # (E,)
    source, target = graphs.edge_index - graphs.node_ptr[graph_of_edge]  # (E,) numbers within each graph
    for n in torch.unique(sizes).tolist():
        chosen = (sizes == n).nonzero()[:, 0]  # (G,)
        place = torch.full((len(graphs),), -1, device=device)
        place[chosen] = torch.arange(chosen.numel(), device=device)
        mine = place[graph_of_edge] >= 0
        adjacency = torch.zeros(chosen.numel(), n, n, dtype=torch.float64, device=device)
        adjacency[place[graph_of_edge[mine]], source[mine], target[mine]] = 1.0
        yield graphs.node_ptr[chosen].unsqueeze(1) + torch.arange(n, device=device), adjacency


def sign_of_largest(vectors: Tensor) -> Tensor:
    """(..., n, m) -> (..., 1, m): ±1 for each column, the sign of its entry of largest magnitude.

    Multiplied with the columns it makes a decomposition's arbitrary signs definite. Of entries that are equally large up
    to rounding the first decides, so that rounding does not. A column of zeros has sign 1.
    """
    size = vectors.abs()
    decides = (size >= size.amax(-2, keepdim=True) * (1 - 1e-6)).double().argmax(-2, keepdim=True)  # (..., 1, m)
    return torch.where(vectors.gather(-2, decides) < 0, -1.0, 1.0).to(vectors.dtype)
