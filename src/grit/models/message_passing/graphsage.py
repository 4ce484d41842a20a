"""GraphSAGE (Hamilton et al. 2017) with max-pooling, as Dwivedi et al. 2020 build it for ZINC.

Messages follow the direction of the edges. Self-loops count as edges; parallel edges change nothing, a maximum ignores how
often a value occurs.

Shape letters: N nodes of the batch, D channels.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from grit.graphs.schema import GraphSchema
from grit.models.blocks import LayerStack, Pooling
from grit.nn.norm import BatchNorm
from grit.options import Dropout, Layers, Width


class SageLayer(nn.Module):
    """x_i <- x_i + BatchNorm(ReLU(normalise(W [x_i ‖ max_{j -> i} ReLU(V x_j + c)] + b))); 0 for the maximum of none."""

    def __init__(self, hidden_dim: int, dropout: float) -> None:
        from torch_geometric.nn import SAGEConv

        super().__init__()
        self.conv = SAGEConv(hidden_dim, hidden_dim, aggr="max", project=True, normalize=True)
        self.norm = BatchNorm(hidden_dim)
        self.dropout = dropout

    def forward(self, x: Tensor, edge_index: Tensor, edge: Tensor) -> Tensor:
        """One round: (N, D) -> (N, D)."""
        mixed = self.conv(F.dropout(x, self.dropout, self.training), edge_index)
        renewed: Tensor = x + self.norm(torch.relu(mixed))
        return renewed


class GraphSage(LayerStack):
    """Layers of `SageLayer`, then the mean over nodes for graphs, and a head. Edge features are not read.

    Args:
        schema: Features and targets of the data; graphs or nodes.
        num_layers: Rounds of messages.
        hidden_dim: Width.
        dropout: On what each round reads.
        pooling: ``sum`` or ``mean`` for graphs, ``none`` for nodes.
    """

    def __init__(
        self,
        schema: GraphSchema,
        num_layers: Layers = 16,
        hidden_dim: Width = 101,
        dropout: Dropout = 0.0,
        pooling: Pooling = "mean",
    ) -> None:
        layers = [SageLayer(hidden_dim, dropout) for _ in range(num_layers)]
        super().__init__(schema, hidden_dim, layers, pooling=pooling)
