"""GCN (Kipf & Welling 2017): every node takes the mean of its neighbours, and a linear map.

Two forms stand behind published numbers. `Gcn` is that of Dwivedi et al. 2020 for ZINC, whose code averages the neighbours
(they say so in issue 57 of benchmarking-gnns). `GcnSymmetric` is that of the Long Range Graph Benchmark (Dwivedi et al. 2022),
with the symmetric normalisation of Kipf & Welling, as GraphGym stacks it.

Messages follow the direction of the edges. Self-loops count as edges, parallel edges count each.

Shape letters: N nodes of the batch, E edges, D channels.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from grit.graphs.schema import GraphSchema
from grit.models.blocks import LayerStack, Pooling, ResidualLayer, mean_at
from grit.nn.norm import BatchNorm
from grit.options import Dropout, Layers, Width


class MeanConv(nn.Module):
    """W mean_{j -> i} x_j + b; a node without incoming edges gets b."""

    def __init__(self, hidden_dim: int) -> None:
        super().__init__()
        self.linear = nn.Linear(hidden_dim, hidden_dim)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Pass messages: (N, D) -> (N, D)."""
        source, target = edge_index
        mixed: Tensor = self.linear(mean_at(x[source], target, x.shape[0]))
        return mixed


class Gcn(LayerStack):
    """x_i <- x_i + ReLU(BatchNorm(W mean_{j -> i} x_j + b)), then the mean over nodes for graphs, and a head.

    Edge features are not read.

    Args:
        schema: Features and targets of the data; graphs or nodes.
        num_layers: Rounds of messages.
        hidden_dim: Width.
        dropout: On the result of each round.
        pooling: ``sum`` or ``mean`` for graphs, ``none`` for nodes.
    """

    def __init__(
        self,
        schema: GraphSchema,
        num_layers: Layers = 16,
        hidden_dim: Width = 172,
        dropout: Dropout = 0.0,
        pooling: Pooling = "mean",
    ) -> None:
        layers = [ResidualLayer(MeanConv(hidden_dim), hidden_dim, dropout=dropout) for _ in range(num_layers)]
        super().__init__(schema, hidden_dim, layers, pooling=pooling)


class SymmetricLayer(nn.Module):
    """x_i <- ReLU(BatchNorm(W Σ_j x_j / √(d_i d_j))), scaled to length 1; j runs over i and its neighbours, d counts them."""

    def __init__(self, hidden_dim: int, dropout: float) -> None:
        from torch_geometric.nn import GCNConv

        super().__init__()
        self.conv = GCNConv(hidden_dim, hidden_dim, bias=False)
        self.norm = BatchNorm(hidden_dim)
        self.dropout = dropout

    def forward(self, x: Tensor, edge_index: Tensor, edge: Tensor) -> Tensor:
        """One round: (N, D) -> (N, D)."""
        x = F.dropout(self.norm(self.conv(x, edge_index)), self.dropout, self.training)
        return F.normalize(torch.relu(x), dim=1)


class GcnSymmetric(LayerStack):
    """x_i <- normalise(ReLU(BatchNorm(W Σ_j x_j / √(d_i d_j)))), then the mean over nodes for graphs, and one linear map.

    No residuals. A node hears itself; a self-loop that is listed already is not added again.

    Args:
        schema: Features and targets of the data; graphs or nodes.
        num_layers: Rounds of messages.
        hidden_dim: Width.
        dropout: Before the ReLU of each round.
        pooling: ``sum`` or ``mean`` for graphs, ``none`` for nodes.
        head_layers: Linear maps of the head.
    """

    def __init__(
        self,
        schema: GraphSchema,
        num_layers: Layers = 5,
        hidden_dim: Width = 300,
        dropout: Dropout = 0.0,
        pooling: Pooling = "mean",
        head_layers: Layers = 1,
    ) -> None:
        layers = [SymmetricLayer(hidden_dim, dropout) for _ in range(num_layers)]
        super().__init__(schema, hidden_dim, layers, pooling=pooling, head_layers=head_layers)
