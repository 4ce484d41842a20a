"""GatedGCN-LSPE (Dwivedi et al. 2022): GatedGCN with a second stream for positions, as published for ZINC.

Shape letters: N nodes of the batch, E edges, B graphs, K - 1 return probabilities, D channels.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from grit.batches.pair_batch import PairBatch
from grit.errors import GritError
from grit.graphs.schema import GraphSchema
from grit.models.blocks import FewRowsNorm, Output, normalised_gates
from grit.nn.heads import sum_per_graph
from grit.nn.norm import BatchNorm
from grit.nn.stem import FEATURE_ENCODERS
from grit.options import Dropout, Layers, Width


class LspeLayer(nn.Module):
    """One round for features h, positions p and edges e.

        ê_ji = B_1 h_j + B_2 h_i + B_3 e_ji            η_ji = σ(ê_ji) / (Σ_k σ(ê_ki) + 1e-6)
        h_i <- h_i + ReLU(norm((A_1 [h_i ‖ p_i] + Σ_j η_ji A_2 [h_j ‖ p_j]) / √n))
        p_i <- p_i + tanh(C_1 p_i + Σ_j η_ji C_2 p_j)            e_ji <- e_ji + ReLU(norm(ê_ji))

    over the listed edges j -> i, with n the nodes of the graph. Positions read features through the gates alone.

    Args:
        hidden_dim: D.
        dropout: On all three.
    """

    def __init__(self, hidden_dim: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = dropout
        self.both_maps = nn.Linear(2 * hidden_dim, 2 * hidden_dim)  # A_1, A_2
        self.gate_maps = nn.Linear(hidden_dim, 2 * hidden_dim)  # B_1, B_2
        self.edge_map = nn.Linear(hidden_dim, hidden_dim)  # B_3
        self.position_maps = nn.Linear(hidden_dim, 2 * hidden_dim)  # C_1, C_2
        self.node_norm = BatchNorm(hidden_dim)
        self.edge_norm = FewRowsNorm(hidden_dim)

    def forward(
        self, h: Tensor, p: Tensor, edge: Tensor, batch: PairBatch, *, update_edges: bool = True
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Features (N, D), positions (N, D), edges (E, D) -> the same; edges as they were without ``update_edges``."""
        source, target = batch.graphs.edge_index
        at_source, at_target = self.gate_maps(h).chunk(2, 1)  # (N, D) each
        score = at_source[source] + at_target[target] + self.edge_map(edge)  # (E, D)
        gate = normalised_gates(score, target, h.shape[0])
        own, message = self.both_maps(torch.cat([h, p], 1)).chunk(2, 1)  # (N, D) each
        received = own.index_add(0, target, gate * message[source])
        own, message = self.position_maps(p).chunk(2, 1)  # (N, D) each
        moved = own.index_add(0, target, gate * message[source])
        sizes = batch.graphs.nodes_per_graph[batch.graphs.graph_of_node].unsqueeze(1).to(h.dtype)  # (N, 1)
        h = self._drop(h + torch.relu(self.node_norm(received * sizes.rsqrt())))
        p = self._drop(p + torch.tanh(moved))
        if update_edges:
            edge = self._drop(edge + torch.relu(self.edge_norm(score)))
        return h, p, edge

    def _drop(self, values: Tensor) -> Tensor:
        return F.dropout(values, self.dropout, self.training)


class GatedGcnLspe(nn.Module):
    """Sixteen rounds; then features and positions together, x_i = W [h_i ‖ p̂_i], mean over nodes for graphs, and a head.

    p begins as W (M_ii, ..., M^(K-1)_ii). At the end it is mapped to K - 1 columns, and each column of a graph is centred and
    scaled to length 1: p̂ = (p - mean) / √(Σ (p - mean)² + 1e-6). The authors divide by the length itself, which is 0 in a
    graph whose nodes are all alike.

    Args:
        schema: Features and targets of the data; graphs or nodes.
        walk_steps: K, of the batches' return probabilities. The first, which is 1 for all nodes, is left out.
        num_layers: Rounds.
        hidden_dim: Width.
        dropout: After each round.
        pooling: ``sum`` or ``mean`` for graphs, ``none`` for nodes.
    """

    def __init__(
        self,
        schema: GraphSchema,
        walk_steps: int = 21,
        num_layers: Layers = 16,
        hidden_dim: Width = 59,
        dropout: Dropout = 0.0,
        pooling: str = "mean",
    ) -> None:
        super().__init__()
        if walk_steps < 2:
            raise GritError(
                f"positions need return probabilities: encoding.walk_steps must be 2 or more, got {walk_steps}."
            )
        self.node = FEATURE_ENCODERS[schema.node.kind](schema.node, hidden_dim)
        self.edge = FEATURE_ENCODERS[schema.edge.kind](schema.edge, hidden_dim)
        self.position = nn.Linear(walk_steps - 1, hidden_dim)
        self.layers = nn.ModuleList(LspeLayer(hidden_dim, dropout=dropout) for _ in range(num_layers))
        self.position_out = nn.Linear(hidden_dim, walk_steps - 1)
        self.join = nn.Linear(hidden_dim + walk_steps - 1, hidden_dim)
        self.output = Output(schema, hidden_dim, pooling=pooling)

    def forward(self, batch: PairBatch) -> Tensor:
        """Predict: (B, T) for graphs, (N, T) for nodes."""
        h, edge = self.node(batch.graphs.x), self.edge(batch.graphs.edge_attr)
        p = self.position(batch.node_encoding[:, 1:])
        for number, layer in enumerate(self.layers, start=1):
            # What the last layer would write to the edges is read by nobody.
            h, p, edge = layer(h, p, edge, batch, update_edges=number < len(self.layers))
        x = self.join(torch.cat([h, _standardised(self.position_out(p), batch)], 1))
        predicted: Tensor = self.output(x, batch)
        return predicted


def _standardised(p: Tensor, batch: PairBatch) -> Tensor:
    """Each column of each graph with mean 0 and length 1, or less where its nodes are almost alike: (N, K - 1)."""
    graph = batch.graphs.graph_of_node
    mean = sum_per_graph(p, batch) / batch.graphs.nodes_per_graph.unsqueeze(1).to(p.dtype)
    centred = p - mean[graph]
    return centred * (sum_per_graph(centred.square(), batch) + 1e-6).rsqrt()[graph]
