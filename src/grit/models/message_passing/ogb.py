"""GCN and GIN of the Open Graph Benchmark (Hu et al. 2021), with and without a virtual node (Gilmer et al. 2017).

They have 5 layers of 600 for PCQM4Mv2. Messages follow the direction of the edges, and degrees are out-degrees.
Self-loops count as edges, parallel edges count each.

Shape letters: N nodes of the batch, E edges, B graphs, D channels, T targets.
"""

import torch
from torch import Tensor, nn

from grit.graphs.schema import GraphSchema
from grit.models.blocks import OgbStack, count_at, sum_at
from grit.models.message_passing.gin import isomorphism_mlp
from grit.nn.stem import FEATURE_ENCODERS


class OgbGcnConv(nn.Module):
    """Σ_{j -> i} ReLU(W x_j + b + e_ji) / √(d_i d_j) + ReLU(W x_i + b + r) / d_i, with d one more than the out-degree.

    Args:
        schema: Of the data; every layer has an encoder of the edge features e to itself.
        hidden_dim: D.
    """

    def __init__(self, schema: GraphSchema, hidden_dim: int) -> None:
        super().__init__()
        self.linear = nn.Linear(hidden_dim, hidden_dim)
        self.root = nn.Parameter(torch.randn(1, hidden_dim))
        self.edge = FEATURE_ENCODERS[schema.edge.kind](schema.edge, hidden_dim)

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:
        """Pass messages: (N, D) -> (N, D)."""
        source, target = edge_index
        x = self.linear(x)
        count = (count_at(source, x.shape[0], x.dtype) + 1).unsqueeze(1)  # (N, 1)
        weight = (count[source] * count[target]).rsqrt()  # (E, 1)
        messages = weight * torch.relu(x[source] + self.edge(edge_attr))  # (E, D)
        heard = sum_at(messages, target, x.shape[0])
        mixed: Tensor = heard + torch.relu(x + self.root) / count
        return mixed


class OgbGinConv(nn.Module):
    """MLP((1 + ε) x_i + Σ_{j -> i} ReLU(x_j + e_ji)), MLP = Linear, BatchNorm, ReLU, Linear.

    Args:
        schema: Of the data; every layer has an encoder of the edge features e to itself.
        hidden_dim: D.
    """

    def __init__(self, schema: GraphSchema, hidden_dim: int) -> None:
        from torch_geometric.nn import GINEConv

        super().__init__()
        self.conv = GINEConv(isomorphism_mlp(hidden_dim), train_eps=True)
        self.edge = FEATURE_ENCODERS[schema.edge.kind](schema.edge, hidden_dim)

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:
        """Pass messages: (N, D) -> (N, D)."""
        mixed: Tensor = self.conv(x, edge_index, self.edge(edge_attr))
        return mixed


class GcnOgb(OgbStack):
    """GCN with edge features, without a virtual node; arguments as in `grit.models.blocks.ogb_stack.OgbStack`."""

    conv, has_virtual_node = OgbGcnConv, False


class GcnVirtual(OgbStack):
    """GCN with edge features and a virtual node; arguments as in `grit.models.blocks.ogb_stack.OgbStack`."""

    conv, has_virtual_node = OgbGcnConv, True


class GinOgb(OgbStack):
    """GIN with edge features, without a virtual node; arguments as in `grit.models.blocks.ogb_stack.OgbStack`."""

    conv, has_virtual_node = OgbGinConv, False


class GinVirtual(OgbStack):
    """GIN with edge features and a virtual node; arguments as in `grit.models.blocks.ogb_stack.OgbStack`."""

    conv, has_virtual_node = OgbGinConv, True
