"""Virtual nodes: tokens that are no node of the graph, attend to all of its nodes, and are attended to by them."""

from typing import NamedTuple

import torch
from torch import Tensor

from grit.batches.pair_batch import PairBatch
from grit.kernels.plain import at_pairs


class Tokens(NamedTuple):
    """The tokens of a batch, its N nodes and then V virtual nodes of each graph in turn, and which attend to which.

    Pairs come in this order: those of the batch; for each node in turn V with a virtual query; as many with a virtual key; for
    each graph in turn V x V among virtual nodes.

    Attributes:
        query: (P',) int64, in no order.
        key: (P',) int64.
        num_tokens: N + B V.
    """

    query: Tensor
    key: Tensor
    num_tokens: int

    def sum(self, values: Tensor) -> Tensor:
        """Sum over the keys of each query: (P', ...) -> (N', ...)."""
        return values.new_zeros(self.num_tokens, *values.shape[1:]).index_add(0, self.query, values)

    def softmax(self, logits: Tensor) -> Tensor:
        """Softmax over the keys of each query: (P', H) -> (P', H)."""
        index = self.query.unsqueeze(1).expand_as(logits)
        top = logits.new_full((self.num_tokens, logits.shape[1]), -torch.inf)
        top = top.scatter_reduce(0, index, logits.detach(), reduce="amax")  # (N', H)
        weight = (logits - at_pairs(top, self.query)).exp()  # (P', H)
        return weight / at_pairs(self.sum(weight), self.query)


def with_virtual_nodes(batch: PairBatch, per_graph: int) -> Tokens:
    """The batch's nodes and pairs together with ``per_graph`` = V virtual nodes for each graph; V may be 0.

    Virtual node v of graph g is token N + g V + v.
    """
    pairs, graphs = batch.pairs, batch.graphs
    device, num_nodes, num_graphs = graphs.x.device, graphs.num_nodes, graphs.num_graphs
    each = torch.arange(per_graph, device=device)
    of_graph = num_nodes + torch.arange(num_graphs * per_graph, device=device).view(num_graphs, per_graph)  # (B, V)
    of_node = (num_nodes + graphs.graph_of_node.unsqueeze(1) * per_graph + each).flatten()  # (N V,)
    nodes = torch.arange(num_nodes, device=device).repeat_interleave(per_graph)  # (N V,)
    among = of_graph.unsqueeze(2).expand(-1, -1, per_graph)  # (B, V, V)
    return Tokens(
        query=torch.cat([pairs.query, of_node, nodes, among.flatten()]),
        key=torch.cat([pairs.key, nodes, of_node, among.mT.flatten()]),
        num_tokens=num_nodes + num_graphs * per_graph,
    )
