"""GINE (Hu et al. 2020): message passing with edge features, four layers of width 64, with PyG's layers."""

import torch
from torch import Tensor, nn
from torch_geometric.nn import GINEConv

from grit.batches.pair_batch import PairBatch
from grit.graphs.schema import GraphSchema
from grit.models.blocks import Output
from grit.nn.norm import BatchNorm
from grit.nn.stem import FEATURE_ENCODERS
from grit.options import Layers, Width


class Gine(nn.Module):
    """x <- x + ReLU(BatchNorm(MLP((1 + ε) x_i + Σ_j ReLU(x_j + e_ji)))), then sum over nodes for graphs, and a head.

    Args:
        schema: Features and targets of the data; graphs or nodes.
        num_layers: Rounds of messages.
        hidden_dim: Width.
    """

    def __init__(self, schema: GraphSchema, num_layers: Layers = 4, hidden_dim: Width = 64) -> None:
        super().__init__()
        self.node = FEATURE_ENCODERS[schema.node.kind](schema.node, hidden_dim)
        self.edge = FEATURE_ENCODERS[schema.edge.kind](schema.edge, hidden_dim)
        self.convs = nn.ModuleList(GINEConv(_mlp(hidden_dim), train_eps=True) for _ in range(num_layers))
        self.norms = nn.ModuleList(BatchNorm(hidden_dim) for _ in range(num_layers))
        self.output = Output(schema, hidden_dim)

    def forward(self, batch: PairBatch) -> Tensor:
        """Predict: (B, T) for graphs, (N, T) for nodes."""
        x, edge = self.node(batch.graphs.x), self.edge(batch.graphs.edge_attr)
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = x + torch.relu(norm(conv(x, batch.graphs.edge_index, edge)))
        predicted: Tensor = self.output(x, batch)
        return predicted


def _mlp(dim: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, dim))
