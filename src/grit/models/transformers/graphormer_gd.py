"""Graphormer-GD (Zhang et al. 2023): Graphormer with resistance distances beside shortest-path distances, also as factors.

Shape letters: N nodes of the batch, P pairs, B graphs, n places (token and nodes), H heads, D channels, G kernels, T targets.
"""

from math import pi, sqrt

import torch
from torch import Tensor, nn

from grit.batches.pair_batch import PairBatch
from grit.encodings.resistance import NOT_JOINED
from grit.graphs.schema import Features, GraphSchema
from grit.models.blocks import Grid
from grit.models.blocks.graphormer_biases import DistanceTable, PathBias, distances
from grit.models.blocks.graphormer_trunk import GraphormerTrunk, Release, initialise
from grit.options import Dropout, Layers, Width

_INFINITE = 512.0  # the authors' number for a resistance that is infinite
_NARROWEST = 1e-2


class ResistanceKernels(nn.Module):
    """W GELU(W g_ij) with G Gaussians g of the resistance, scaled and shifted by the types of both ends: (P,) -> (P, H).

        g_ijk = exp( -(s_ij R_ij + t_ij - μ_k)² / 2σ_k² ) / (sqrt(2π) σ_k),    s_ij = s_{x_i} + s'_{x_j},  t_ij likewise

    The type of a node is its first category; nodes without categories have one type.

    Args:
        node: What a node carries.
        num_heads: H.
        num_kernels: G.
    """

    def __init__(self, node: Features, num_heads: int, num_kernels: int) -> None:
        super().__init__()
        self.has_types = node.is_integer
        types = node.sizes[0] if node.is_integer else 1
        self.query_scale, self.key_scale = (nn.Parameter(torch.ones(types)) for _ in range(2))
        self.query_shift, self.key_shift = (nn.Parameter(torch.zeros(types)) for _ in range(2))
        self.mean, self.width = (nn.Parameter(torch.empty(num_kernels).uniform_(0.0, 3.0)) for _ in range(2))
        self.mlp = nn.Sequential(nn.Linear(num_kernels, num_kernels), nn.GELU(), nn.Linear(num_kernels, num_heads))

    def forward(self, resistance: Tensor, batch: PairBatch) -> Tensor:
        """Encode."""
        x = batch.graphs.x
        kind = x[:, 0] if self.has_types else torch.zeros(batch.num_nodes, dtype=torch.int64, device=x.device)
        query, key = kind[batch.pairs.query], kind[batch.pairs.key]  # (P,)
        scale, shift = self.query_scale[query] + self.key_scale[key], self.query_shift[query] + self.key_shift[key]
        width = self.width.abs() + _NARROWEST
        at = (scale * resistance + shift).unsqueeze(1)  # (P, 1)
        gaussians = torch.exp(-0.5 * ((at - self.mean) / width).square()) / (sqrt(2 * pi) * width)  # (P, G)
        encoded: Tensor = self.mlp(gaussians)
        return encoded


class GraphormerGd(nn.Module):
    """α_ij = (r_φ(i,j) + κ'(R_ij)) Softmax_j( (W_Q x_i)·(W_K x_j) / sqrt(C) + b_φ(i,j) + c_ij + κ(R_ij) ).

    φ is the shortest-path distance and R the resistance distance, read by kernels κ and κ' (`ResistanceKernels`). The token has a
    number of its own instead of each sum. All else as in `grit.models.transformers.graphormer.Graphormer`; for R, edges have
    no direction, and parallel ones count once.

    Args:
        schema: Features and targets of the data; graphs or nodes.
        walk_steps: K of the encoding ``resistance``: distances 0 to K - 1 are told apart.
        num_layers: L.
        hidden_dim: D.
        ffn_dim: Width of the FFNs.
        num_heads: H, a divisor of D.
        num_kernels: G.
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
        num_kernels: Width = 128,
        dropout: Dropout = 0.0,
        attention_dropout: Dropout = 0.1,
        activation_dropout: Dropout = 0.1,
        path_steps: Layers = 5,
        max_degree: Width = 63,
        release: Release = "second",
    ) -> None:
        super().__init__()
        self.walk_steps = walk_steps
        self.num_distances = walk_steps + (release == "second")
        self.distance, self.factor = (DistanceTable(num_heads, self.num_distances) for _ in range(2))
        self.path = PathBias(schema.edge, num_heads, path_steps)
        self.kernels, self.factor_kernels = (ResistanceKernels(schema.node, num_heads, num_kernels) for _ in range(2))
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

    def forward(self, batch: PairBatch) -> Tensor:
        """Predict: (B, T) for graphs, (N, T) for nodes."""
        grid, distance = Grid(batch.graphs.nodes_per_graph, tokens=1), distances(batch, self.walk_steps)
        given = batch.pair_encoding[:, self.walk_steps]  # (P,)
        resistance = torch.where(given == NOT_JOINED, _INFINITE, given)
        query, key = batch.pairs.query, batch.pairs.key
        bias = self.distance(distance, batch, grid) + self.path(batch, grid)
        bias = bias + grid.add_pairs(self.kernels(resistance, batch), query, key)
        factor = self.factor(distance, batch, grid)
        factor = factor + grid.add_pairs(self.factor_kernels(resistance, batch), query, key)
        predicted: Tensor = self.trunk(batch, grid, distance < self.num_distances, bias, factor)
        return predicted
