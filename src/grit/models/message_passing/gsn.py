"""GSN, graph substructure network (Bouritsas et al. 2022): messages that know how many cycles run through a node or an edge.

    m_ij = MLP([x_i ‖ x_j ‖ id_i ‖ id_j ‖ e_ji])        GSN-v; with id_ij in place of id_i and id_j, GSN-e
    x_i <- ReLU(norm(MLP([x_i ‖ Σ_j m_ij])))

Only the first layer reads the identifiers id, the one-hot numbers of cycles of each length; the others leave them out. x, e and
id enter as one-hot vectors. Cycles are those of the graph without directions, self-loops and parallel edges; messages follow the
listed edges, each of them once.

Shape letters: N nodes of the batch, E edges, D channels, K the longest cycle.
"""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from grit.batches.pair_batch import PairBatch
from grit.encodings.cycles import cycle_lengths
from grit.graphs.schema import GraphSchema
from grit.models.blocks import FewRowsNorm, OneHot, normed_mlp
from grit.nn.graph_features import JoinFeatures
from grit.nn.heads import readout_class
from grit.options import Dropout, Layers, Width


class Gsn(nn.Module):
    """Messages between nodes with cycle counts, then a sum over nodes for graphs, and an MLP.

    Args:
        schema: Features and targets of the data; graphs or nodes.
        walk_steps: K of the encoding ``cycles``, the longest cycle that is counted.
        num_layers: Rounds of messages.
        hidden_dim: D.
        identifiers: What cycles are counted for: every ``node`` (GSN-v) or every ``edge`` (GSN-e).
        max_count: Larger numbers of cycles are read as this one. In ZINC none is larger than 5.
        dropout: On the predictions, as published.
    """

    def __init__(
        self,
        schema: GraphSchema,
        walk_steps: int,
        num_layers: Layers = 4,
        hidden_dim: Width = 150,
        identifiers: Literal["node", "edge"] = "node",
        max_count: Width = 5,
        dropout: Dropout = 0.0,
    ) -> None:
        super().__init__()
        self.identifiers, self.num_counts = identifiers, max_count + 1
        self.node, self.edge = OneHot(schema.node), OneHot(schema.edge)
        of_counts = cycle_lengths(walk_steps) * self.num_counts * (2 if identifiers == "node" else 1)
        widths = [self.node.width, *[hidden_dim] * (num_layers - 1)]
        extra = [self.edge.width + of_counts, *[self.edge.width] * (num_layers - 1)]
        self.layers = nn.ModuleList(
            GsnLayer(dim=width, edge_dim=edge, hidden_dim=hidden_dim) for width, edge in zip(widths, extra, strict=True)
        )
        self.readout = readout_class(schema.level, "sum" if schema.level == "graph" else "none")(hidden_dim)
        self.joined = JoinFeatures(schema, hidden_dim)
        self.head = normed_mlp(hidden_dim, hidden_dim, schema.num_outputs, final=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, batch: PairBatch) -> Tensor:
        """Predict: (B, T) for graphs, (N, T) for nodes."""
        edge_index, dtype = batch.graphs.edge_index, batch.log_degree.dtype
        x = self.node(batch.graphs.x, dtype)
        edge = self.edge(batch.graphs.edge_attr, dtype)
        for number, layer in enumerate(self.layers):
            read = torch.cat([self.counts(batch), edge], 1) if number == 0 else edge
            x = layer(x, edge_index, read)
        predicted: Tensor = self.dropout(self.head(self.joined(self.readout(x, x, batch), batch)))
        return predicted

    def counts(self, batch: PairBatch) -> Tensor:
        """One-hot numbers of cycles that belong to each edge's message, (E, ...)."""
        if self.identifiers == "edge":
            return self._one_hot(batch.pair_encoding[batch.pairs.edge_pair])
        source, target = batch.graphs.edge_index
        of_nodes = self._one_hot(batch.node_encoding)
        return torch.cat([of_nodes[target], of_nodes[source]], 1)

    def _one_hot(self, counts: Tensor) -> Tensor:
        """(R, K - 2) -> (R, (K - 2) (max_count + 1))."""
        classes = counts.long().clamp(max=self.num_counts - 1)
        return F.one_hot(classes, self.num_counts).flatten(1).to(counts.dtype)


class GsnLayer(nn.Module):
    """One round: x_i <- ReLU(norm(MLP([x_i ‖ Σ_j MLP([x_i ‖ x_j ‖ e_ji])]))).

    Args:
        dim: Width of x.
        edge_dim: Width of e, identifiers included.
        hidden_dim: D, of the result.
    """

    def __init__(self, *, dim: int, edge_dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.message = normed_mlp(2 * dim + edge_dim, hidden_dim, hidden_dim, final=False)
        self.update = normed_mlp(dim + hidden_dim, hidden_dim, hidden_dim, final=False)
        self.norm = FewRowsNorm(hidden_dim)

    def forward(self, x: Tensor, edge_index: Tensor, edge: Tensor) -> Tensor:
        """Update: x (N, dim), edge (E, edge_dim) -> (N, D)."""
        source, target = edge_index
        message = self.message(torch.cat([x.index_select(0, target), x.index_select(0, source), edge], 1))  # (E, D)
        received = message.new_zeros(x.shape[0], message.shape[1]).index_add(0, target, message)
        return torch.relu(self.norm(self.update(torch.cat([x, received], 1))))
