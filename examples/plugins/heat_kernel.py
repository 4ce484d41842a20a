"""An encoding from outside: the heat kernel exp(-tL) at K times, how much of what starts at i is at j after time t.

    grit train zinc-mini encoding.name=heat-kernel --plugin examples/plugins/heat_kernel.py

L is the symmetric-normalised Laplacian. The times 2^0 - 1, 2^1 - 1, 2^2 - 1 ... begin with the identity.
Shape letters: N nodes of the batch, P pairs, K times, G graphs with n nodes each.
"""

import torch

import grit
from grit.encodings import Encoding, EncodingKind
from grit.encodings.adjacency import adjacency_by_size
from grit.encodings.laplacian import normalised_laplacian


def heat_kernel(graphs, pairs, walk_steps, dtype):
    """Node part (N, K), what remains at the node; pair part (P, K), what goes from query to key."""
    times = 2.0 ** torch.arange(walk_steps, dtype=torch.float64) - 1  # (K,)
    node = torch.zeros(graphs.num_nodes, walk_steps, dtype=dtype)
    pair = torch.zeros(pairs.num_pairs, walk_steps, dtype=dtype)
    first_node = graphs.node_ptr[graphs.graph_of_node]  # (N,)
    for nodes, adjacency in adjacency_by_size(graphs):  # graphs of one size at a time: (G, n), (G, n, n)
        values, vectors = torch.linalg.eigh(normalised_laplacian(adjacency))  # (G, n), (G, n, n)
        decay = torch.exp(-times * values.unsqueeze(-1))  # (G, n, K)
        heat = torch.einsum("gim,gmk,gjm->gijk", vectors, decay, vectors).to(dtype)  # (G, n, n, K)
        node[nodes] = heat.diagonal(dim1=1, dim2=2).transpose(1, 2)
        graph = torch.full((graphs.num_nodes,), -1)
        graph[nodes] = torch.arange(len(nodes)).unsqueeze(1)
        here = (graph[pairs.query] >= 0).nonzero()[:, 0]
        query, key = pairs.query[here], pairs.key[here]
        pair[here] = heat[graph[query], query - first_node[query], key - first_node[key]]
    return Encoding(node=node, pair=pair)


def _times(walk_steps):
    return walk_steps


grit.ENCODINGS["heat-kernel"] = EncodingKind(heat_kernel, node_dim=_times, pair_dim=_times)
