"""Resistance distance beside shortest-path distance, the pair encoding of Graphormer-GD (Zhang et al. 2023).

    R_ij = L⁺_ii + L⁺_jj - 2 L⁺_ij,     L = D - A

the resistance between i and j of a network in which every edge is a resistor of 1. A is made symmetric: i and j are joined if
either edge is listed.

Shape letters: N nodes of the batch, P pairs, K distances, G graphs with n nodes each.
"""

import torch
from torch import Tensor

from grit.encodings.adjacency import adjacency_by_size
from grit.encodings.encoding import Encoding
from grit.encodings.spd import spd_encoding
from grit.graphs.packed import PackedGraphs
from grit.graphs.pairs import Pairs

NOT_JOINED = -1.0  # where the resistance is infinite


def resistance_encoding(graphs: PackedGraphs, pairs: Pairs, walk_steps: int, dtype: torch.dtype) -> Encoding:
    """Pair part (P, K + 1) with K = ``walk_steps``: the distances of ``spd``, then R_ij; nothing on nodes.

    Between nodes of different components R is infinite and -1 stands for it. Parallel edges count once; self-loops and
    ``edge_weight`` are ignored.
    """
    place = torch.arange(graphs.num_nodes, device=graphs.x.device) - graphs.node_ptr[graphs.graph_of_node]  # (N,)
    resistance = torch.empty(pairs.num_pairs, dtype=torch.float64, device=graphs.x.device)
    group_of_node = torch.empty_like(place)
    for nodes, adjacency in adjacency_by_size(graphs):
        group_of_node.fill_(-1)
        group_of_node[nodes] = torch.arange(nodes.shape[0], device=nodes.device).unsqueeze(1).expand_as(nodes)
        group = group_of_node[pairs.query]
        mine = group >= 0
        between = resistances(adjacency)  # (G, n, n)
        resistance[mine] = between[group[mine], place[pairs.query[mine]], place[pairs.key[mine]]]
    distance = spd_encoding(graphs, pairs, walk_steps, dtype)
    return Encoding(node=distance.node, pair=torch.cat([distance.pair, resistance.to(dtype).unsqueeze(1)], 1))


def resistances(adjacency: Tensor) -> Tensor:
    """R of each adjacency matrix, made symmetric, and -1 between components: (G, n, n) -> (G, n, n)."""
    n = adjacency.shape[-1]
    no_loops = 1.0 - torch.eye(n, dtype=adjacency.dtype, device=adjacency.device)
    joined = torch.maximum(adjacency, adjacency.mT) * no_loops
    connected = _connected(joined)  # (G, n, n)
    laplacian = torch.diag_embed(joined.sum(-1)) - joined
    # Adding 1/n_c within each component c makes L invertible, and adds the same to L⁺ there: no difference changes.
    inverse = torch.linalg.inv(laplacian + connected / connected.sum(-1, keepdim=True))
    diagonal = inverse.diagonal(dim1=-2, dim2=-1)
    between = diagonal.unsqueeze(-1) + diagonal.unsqueeze(-2) - 2 * inverse
    return torch.where(connected > 0, between.clamp(min=0.0), NOT_JOINED)


def _connected(joined: Tensor) -> Tensor:
    """1 where there is a way, 0 elsewhere: (G, n, n) -> (G, n, n)."""
    n = joined.shape[-1]
    reached = joined + torch.eye(n, dtype=joined.dtype, device=joined.device)
    for _ in range(max(1, n - 1).bit_length()):  # ways of 1, 2, 4 ... steps
        reached = (reached @ reached > 0).to(joined.dtype)
    return reached
