"""Graphormer (Ying et al. 2021): attention with a bias for the distance of two nodes and for the edges on the way between them.

Shape letters: N nodes of the batch, P pairs, B graphs, n places (token and nodes), H heads, D channels, T targets.
"""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from grit.batches.pair_batch import PairBatch
from grit.graphs.schema import GraphSchema
from grit.models.blocks import Grid
from grit.models.blocks.graphormer_biases import DistanceTable, PathBias, distances
from grit.models.blocks.graphormer_trunk import GraphormerTrunk, Release, initialise
from grit.nn.attention.contract import check_heads
from grit.options import Dropout, Layers, Width


class Graphormer(nn.Module):
    """α_ij = Softmax_j( (W_Q x_i)·(W_K x_j) / sqrt(C) + b_φ(i,j) + c_ij ) in every layer, φ being the shortest-path distance.

    c_ij is the mean of what the edges on the way from i to j say (`PathBias`). Ways follow the directions of edges; self-loops
    count for degrees alone; parallel edges make ways of their own, and count one by one for degrees.

    Args:
        schema: Features and targets of the data; graphs or nodes.
        walk_steps: K of the encoding ``spd``: distances 0 to K - 1 are told apart.
        num_layers: L.
        hidden_dim: D.
        ffn_dim: Width of the FFNs.
        num_heads: H, a divisor of D.
        dropout: On the input and in every layer.
        attention_dropout: On the attention weights.
        activation_dropout: Inside the FFNs.
        path_steps: Edges of the way that are looked at, the first ones.
        max_degree: Larger degrees share its row.
        release: Of the authors' code, see `GraphormerTrunk`. In the first, pairs at a distance of K or more, or without a way, do
            not attend to each other; in the second they have a bias of their own.
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
        self.factor = self.make_factor(num_heads)
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
        if self.factor is not None:
            for numbers in self.factor.parameters():
                nn.init.ones_(numbers)

    def make_factor(self, num_heads: int) -> DistanceTable | None:
        """A table of factors for the attention weights; None for a factor of 1."""
        return None

    def forward(self, batch: PairBatch) -> Tensor:
        """Predict: (B, T) for graphs, (N, T) for nodes."""
        grid, distance = Grid(batch.graphs.nodes_per_graph, tokens=1), distances(batch, self.walk_steps)
        bias = self.distance(distance, batch, grid) + self.path(batch, grid)
        factor = None if self.factor is None else self.factor(distance, batch, grid)
        predicted: Tensor = self.trunk(batch, grid, distance < self.num_distances, bias, factor)
        return predicted


def check_graphormer(options: Mapping[str, Any]) -> None:
    """Raise where options of Graphormer, or of a descendant, do not go together, before anything is built."""
    check_heads(options["hidden_dim"], options["num_heads"])


def graphormer_structures(options: Mapping[str, Any]) -> tuple[str, ...]:
    """What they read of `STRUCTURES`."""
    return (f"paths-{options['path_steps']}",)
