"""GINE (Hu et al. 2020): message passing with edge features.

Messages follow the direction of the edges. Self-loops count as edges, parallel edges count each.

Shape letters: N nodes of the batch, E edges, B graphs, D channels, T targets.
"""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from grit.batches.pair_batch import PairBatch
from grit.graphs.schema import GraphSchema
from grit.models.blocks import Output, Pooling
from grit.nn.norm import BatchNorm
from grit.nn.stem import FEATURE_ENCODERS
from grit.options import Dropout, Layers, Width


class Gine(nn.Module):
    """x_i <- x_i + ReLU(BatchNorm(MLP((1 + ε) x_i + Σ_{j -> i} ReLU(x_j + e_ji)))), then pool for graphs, and a head.

    The Long Range Graph Benchmark (Dwivedi et al. 2022) has five layers of 208 without BatchNorm, with ε = 0, the mean over
    nodes and a head of one linear map.

    Args:
        schema: Features and targets of the data; graphs or nodes.
        num_layers: Rounds of messages.
        hidden_dim: Width.
        dropout: After the ReLU of each round.
        pooling: ``sum`` or ``mean`` for graphs, ``none`` for nodes.
        norm: ``batch`` or ``none``.
        learn_epsilon: Whether ε is learned; it is 0 otherwise.
        head_layers: Linear maps of the head, each half as wide as the one before.
    """

    def __init__(
        self,
        schema: GraphSchema,
        num_layers: Layers = 4,
        hidden_dim: Width = 64,
        dropout: Dropout = 0.0,
        pooling: Pooling = "sum",
        norm: Literal["batch", "none"] = "batch",
        learn_epsilon: bool = True,
        head_layers: Layers = 3,
    ) -> None:
        from torch_geometric.nn import GINEConv

        super().__init__()
        self.node = FEATURE_ENCODERS[schema.node.kind](schema.node, hidden_dim)
        self.edge = FEATURE_ENCODERS[schema.edge.kind](schema.edge, hidden_dim)
        self.convs = nn.ModuleList(GINEConv(_mlp(hidden_dim), train_eps=learn_epsilon) for _ in range(num_layers))
        self.norms = nn.ModuleList(
            BatchNorm(hidden_dim) if norm == "batch" else nn.Identity() for _ in range(num_layers)
        )
        self.dropout = dropout
        self.output = Output(schema, hidden_dim, pooling=pooling, num_layers=head_layers)

    def forward(self, batch: PairBatch) -> Tensor:
        """Predict: (B, T) for graphs, (N, T) for nodes."""
        x, edge = self.node(batch.graphs.x), self.edge(batch.graphs.edge_attr)  # (N, D), (E, D)
        for conv, norm in zip(self.convs, self.norms, strict=True):
            renewed = torch.relu(norm(conv(x, batch.graphs.edge_index, edge)))
            x = x + F.dropout(renewed, self.dropout, self.training)
        predicted: Tensor = self.output(x, batch)
        return predicted


def _mlp(dim: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, dim))
