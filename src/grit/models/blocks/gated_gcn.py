"""The layer of GatedGCN (Bresson & Laurent 2017), which GPS has inside, too.

Shape letters: N nodes of the batch, E edges, D channels.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from grit.models.blocks.few_rows import FewRowsNorm
from grit.nn.activation import activation_function
from grit.nn.norm import BatchNorm


class GatedGcnLayer(nn.Module):
    """Messages through gates, one per edge and channel; edges are updated, too.

        ê_ji = C e_ji + D x_i + E x_j            η_ji = σ(ê_ji) / (Σ_k σ(ê_ki) + 1e-6)
        x_i <- x_i + ReLU(norm(A x_i + Σ_j η_ji B x_j))            e_ji <- e_ji + ReLU(norm(ê_ji))

    over the listed edges j -> i: parallel edges have a gate each, a self-loop is an edge like others.

    Args:
        hidden_dim: D.
        dropout: On what is added to nodes and edges.
        activation: In place of ReLU, entry of `ACTIVATIONS`.
    """

    def __init__(self, hidden_dim: int, *, dropout: float = 0.0, activation: str = "relu") -> None:
        super().__init__()
        self.dropout, self.activation = dropout, activation_function(activation)
        self.node_maps = nn.Linear(hidden_dim, 4 * hidden_dim)  # A, B, D, E
        self.edge_map = nn.Linear(hidden_dim, hidden_dim)  # C
        self.node_norm = BatchNorm(hidden_dim)
        self.edge_norm = FewRowsNorm(hidden_dim)

    def forward(
        self, x: Tensor, edge: Tensor, edge_index: Tensor, *, update_edges: bool = True
    ) -> tuple[Tensor, Tensor]:
        """Nodes (N, D) and edges (E, D) -> the same; edges as they were without ``update_edges``."""
        own, message, at_target, at_source = self.node_maps(x).chunk(4, 1)  # (N, D) each
        source, target = edge_index
        score = self.edge_map(edge) + at_target[target] + at_source[source]  # (E, D)
        gate = normalised_gates(score, target, x.shape[0])
        received = own.index_add(0, target, gate * message[source])  # (N, D)
        x = x + self._drop(self.activation(self.node_norm(received)))
        if update_edges:
            edge = edge + self._drop(self.activation(self.edge_norm(score)))
        return x, edge

    def _drop(self, values: Tensor) -> Tensor:
        return F.dropout(values, self.dropout, self.training)


def normalised_gates(score: Tensor, target: Tensor, num_nodes: int) -> Tensor:
    """η of every edge, (E, D): the sigmoid of its score, over the sum of those of all edges with the same target."""
    gate = torch.sigmoid(score)
    total = gate.new_zeros(num_nodes, gate.shape[1]).index_add(0, target, gate)  # (N, D)
    return gate / (total[target] + 1e-6)
