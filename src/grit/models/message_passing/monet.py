"""MoNet (Monti et al. 2017): Gaussian kernels of node degrees weigh messages, as Dwivedi et al. 2020 build it for ZINC.

Messages follow the direction of the edges, and degrees are in-degrees. Self-loops count as edges, parallel edges count each.

Shape letters: N nodes of the batch, E edges, D channels, K kernels, U = 2 coordinates of an edge.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from grit.batches.pair_batch import PairBatch
from grit.graphs.schema import GraphSchema
from grit.models.blocks import LayerStack, Pooling, count_at, sum_at
from grit.nn.norm import BatchNorm
from grit.options import Dropout, Layers, Width

_COORDINATES = 2


def degree_coordinates(edge_index: Tensor, num_nodes: int, dtype: torch.dtype) -> Tensor:
    """(1/√(d_j + 1), 1/√(d_i + 1)) of each edge j -> i, d the in-degree: (E, 2)."""
    scale = (count_at(edge_index[1], num_nodes, dtype) + 1).rsqrt()  # (N,)
    return scale[edge_index].t()


class MoNetLayer(nn.Module):
    """x_i <- x_i + ReLU(BatchNorm(Σ_{j -> i} Σ_k w_k(u_ij) W_k x_j)) + b, a mixture of K Gaussians.

    The weight is w_k(u) = exp(-½ Σ_c (tanh(V u + v) - μ_k)²_c σ^-2_kc), with the coordinates u of `degree_coordinates`.

    Args:
        hidden_dim: D.
        num_kernels: K.
        dropout: On the result.
    """

    def __init__(self, hidden_dim: int, num_kernels: int, dropout: float) -> None:
        super().__init__()
        self.coordinates = nn.Linear(_COORDINATES, _COORDINATES)
        self.mean = nn.Parameter(0.1 * torch.randn(num_kernels, _COORDINATES))
        self.inverse_width = nn.Parameter(torch.ones(num_kernels, _COORDINATES))
        self.linear = nn.Linear(hidden_dim, num_kernels * hidden_dim, bias=False)
        nn.init.xavier_normal_(self.linear.weight, gain=nn.init.calculate_gain("relu"))
        self.norm = BatchNorm(hidden_dim)
        self.bias = nn.Parameter(torch.zeros(hidden_dim))
        self.dropout = dropout

    def weights(self, coordinates: Tensor) -> Tensor:
        """w_k of each edge: (E, U) -> (E, K)."""
        away = torch.tanh(self.coordinates(coordinates)).unsqueeze(1) - self.mean  # (E, K, U)
        return torch.exp(-0.5 * (away * self.inverse_width).square().sum(-1))  # (E, K)

    def forward(self, x: Tensor, edge_index: Tensor, edge: Tensor) -> Tensor:
        """One round: (N, D) -> (N, D)."""
        source, target = edge_index
        values = self.linear(x).view(x.shape[0], -1, x.shape[1])  # (N, K, D)
        messages = torch.einsum("ek,ekd->ed", self.weights(edge), values[source])  # (E, D)
        mixed = sum_at(messages, target, x.shape[0])  # (N, D)
        x = x + torch.relu(self.norm(mixed)) + self.bias
        return F.dropout(x, self.dropout, self.training)


class MoNet(LayerStack):
    """Layers of `MoNetLayer`, then the mean over nodes for graphs, and a head. Edge features are not read.

    Args:
        schema: Features and targets of the data; graphs or nodes.
        num_layers: Rounds of messages.
        hidden_dim: Width.
        num_kernels: K.
        dropout: On the result of each round.
        pooling: ``sum`` or ``mean`` for graphs, ``none`` for nodes.
    """

    def __init__(
        self,
        schema: GraphSchema,
        num_layers: Layers = 16,
        hidden_dim: Width = 101,
        num_kernels: Width = 3,
        dropout: Dropout = 0.0,
        pooling: Pooling = "mean",
    ) -> None:
        layers = [MoNetLayer(hidden_dim, num_kernels, dropout) for _ in range(num_layers)]
        super().__init__(schema, hidden_dim, layers, pooling=pooling)

    def edges(self, batch: PairBatch) -> Tensor:
        """The coordinates of each edge, (E, U)."""
        return degree_coordinates(batch.graphs.edge_index, batch.num_nodes, batch.log_degree.dtype)
