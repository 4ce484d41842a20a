"""A model from outside: GIN whose sums are scaled by the degree, relative to the mean log-degree of the training set.

    grit train zinc-mini model.name=scaled-gin model.hidden_dim=32 --plugin examples/plugins/scaled_gin.py

    x_i <- x_i + MLP( s_i Σ_{j -> i} ReLU(x_j + e_ji) ),     s_i = mean log(1 + d) / log(2 + d_i)

The options of ``model:`` in a recipe are the parameters of the constructor, with their types, bounds and defaults. ``schema``
describes the data; ``degree_histogram`` is an entry of ``grit.STATISTICS``, computed from the training set and kept by the run.
"""

from typing import Literal

import torch
from torch import nn

import grit
from grit.models import ModelKind
from grit.nn.heads import HalvingHead, readout_class
from grit.nn.stem import FEATURE_ENCODERS
from grit.options import Dropout, Layers, Width


class ScaledGin(nn.Module):
    """Message passing for graphs or nodes.

    Args:
        schema: Features and targets of the data.
        degree_histogram: Nodes of the training set with 0, 1, 2 ... edges that leave them.
        num_layers: Rounds.
        hidden_dim: Width, even.
        dropout: After each round.
        pooling: Of graphs; nodes have none.
    """

    def __init__(
        self,
        *,
        schema: grit.GraphSchema,
        degree_histogram: list[int],
        num_layers: Layers = 3,
        hidden_dim: Width = 32,
        dropout: Dropout = 0.0,
        pooling: Literal["sum", "mean", "none"] = "sum",
    ) -> None:
        super().__init__()
        nodes = torch.tensor(degree_histogram, dtype=torch.float64)
        log_degree = torch.arange(len(nodes), dtype=torch.float64).log1p()
        self.mean_log_degree = float((nodes * log_degree).sum() / nodes.sum())
        self.node = FEATURE_ENCODERS[schema.node.kind](schema.node, hidden_dim)
        self.edge = FEATURE_ENCODERS[schema.edge.kind](schema.edge, hidden_dim)
        self.rounds = nn.ModuleList(
            nn.Sequential(nn.Linear(hidden_dim, hidden_dim), nn.ReLU(), nn.Linear(hidden_dim, hidden_dim))
            for _ in range(num_layers)
        )
        self.dropout = nn.Dropout(dropout)
        self.readout = readout_class(schema.level, pooling)(hidden_dim)
        self.head = HalvingHead(hidden_dim=hidden_dim, num_outputs=schema.num_outputs, num_layers=2, activation="relu")

    def forward(self, batch):
        """Predict: (B, T) for graphs, (N, T) for nodes."""
        source, target = batch.graphs.edge_index
        x, edge = self.node(batch.graphs.x), self.edge(batch.graphs.edge_attr)  # (N, D), (E, D)
        scale = self.mean_log_degree / torch.log(2.0 + batch.degree).to(x.dtype).unsqueeze(1)  # (N, 1)
        for mlp in self.rounds:
            received = torch.zeros_like(x).index_add(0, target, torch.relu(x[source] + edge))
            x = x + self.dropout(mlp(scale * received))
        return self.head(self.readout(x, x, batch))


def check(options):
    """Refuse options that do not go together, before anything is built."""
    if options["hidden_dim"] % 2:
        raise ValueError(f"hidden_dim must be even, got {options['hidden_dim']}")


grit.MODELS["scaled-gin"] = ModelKind(ScaledGin, check)
