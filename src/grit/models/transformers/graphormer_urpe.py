"""Graphormer-URPE (Luo et al. 2022): Graphormer whose attention weights are multiplied by a learned number for each distance.

Shape letters: N nodes of the batch, P pairs, B graphs, n places (token and nodes), H heads, D channels, T targets.
"""

import torch
from torch import Tensor, nn

from grit.batches.pair_batch import PairBatch
from grit.graphs.schema import GraphSchema
from grit.models.blocks import Grid
from grit.models.blocks.graphormer import DistanceTable, GraphormerTrunk, PathBias, Release, distances, initialise
from grit.options import Dropout, Layers, Width


class GraphormerUrpe(nn.Module):
    """α_ij = r_φ(i,j) Softmax_j( (W_Q x_i)·(W_K x_j) / sqrt(C) + b_φ(i,j) + c_ij ): rows need not sum to 1.

    r is a table as b is, for every head and distance and one number for pairs with the token. It begins with 1, so that the model
    begins as Graphormer. All else, and all arguments, as in `grit.models.transformers.graphormer.Graphormer`.

    Args:
        schema: Features and targets of the data; graphs or nodes.
        walk_steps: K of the encoding ``spd``.
        num_layers: L.
        hidden_dim: D.
        ffn_dim: Width of the FFNs.
        num_heads: H, a divisor of D.
        dropout: On the input and in every layer.
        attention_dropout: On the attention weights.
        activation_dropout: Inside the FFNs.
        path_steps: Edges of the way that are looked at.
        max_degree: Larger degrees share its row.
        release: Of the code of Graphormer's authors.
    """

    def __init__(
        self,
        schema: GraphSchema,
        walk_steps: int,
        num_layers: Layers = 12,
        hidden_dim: Width = 80,
        ffn_dim: Width = 80,
        num_heads: Width = 8,
        dropout: Dropout = 0.1,
        attention_dropout: Dropout = 0.1,
        activation_dropout: Dropout = 0.0,
        path_steps: Layers = 20,
        max_degree: Width = 63,
        release: Release = "first",
    ) -> None:
        super().__init__()
        self.walk_steps = walk_steps
        self.num_distances = walk_steps + (release == "second")
        self.distance = DistanceTable(num_heads, self.num_distances)
        self.factor = DistanceTable(num_heads, self.num_distances)
        self.path = PathBias(schema.edge, num_heads, path_steps)
        self.trunk = GraphormerTrunk(
            schema,
            num_layers=num_layers,
            hidden_dim=hidden_dim,
            ffn_dim=ffn_dim,
            num_heads=num_heads,
            dropout=dropout,
            attention_dropout=attention_dropout,
            activation_dropout=activation_dropout,
            max_degree=max_degree,
            release=release,
        )
        initialise(self, num_layers, release)
        with torch.no_grad():
            for numbers in self.factor.parameters():
                numbers.fill_(1.0)

    def forward(self, batch: PairBatch) -> Tensor:
        """Predict: (B, T) for graphs, (N, T) for nodes."""
        grid, distance = Grid(batch.graphs.nodes_per_graph, tokens=1), distances(batch, self.walk_steps)
        bias = self.distance(distance, batch, grid) + self.path(batch, grid)
        factor = self.factor(distance, batch, grid)
        predicted: Tensor = self.trunk(batch, grid, distance < self.num_distances, bias, factor)
        return predicted
