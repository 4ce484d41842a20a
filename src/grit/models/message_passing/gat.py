"""GAT (Veličković et al. 2018) as Dwivedi et al. 2020 build it for ZINC, and GATv2 (Brody et al. 2022) in the same form.

Both weigh neighbours by a softmax over the edges that end at a node, α_ij = softmax_j(s_ij), j -> i:

    GAT     s_ij = LeakyReLU(a_l · W x_j + a_r · W x_i)         the order of the keys j is the same for every query i
    GATv2   s_ij = a · LeakyReLU(W_l x_j + W_r x_i)             it may differ from query to query

Messages follow the direction of the edges. Self-loops count as edges and none are added; parallel edges count each.

Shape letters: N nodes of the batch, H heads, C channels per head, D = H*C.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from grit.graphs.schema import GraphSchema
from grit.models.blocks import LayerStack, Pooling, ResidualLayer
from grit.nn.attention.contract import check_heads
from grit.options import Dropout, Layers, Width


class InputDropout(nn.Module):
    """Dropout on what a convolution reads."""

    def __init__(self, conv: nn.Module, dropout: float) -> None:
        super().__init__()
        self.conv = conv
        self.dropout = dropout

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Pass messages: (N, D) -> (N, D)."""
        mixed: Tensor = self.conv(F.dropout(x, self.dropout, self.training), edge_index)
        return mixed


class Gat(LayerStack):
    """x_i <- x_i + ELU(BatchNorm(‖_h Σ_{j -> i} α^h_ij W^h x_j)), then the mean over nodes for graphs, and a head.

    The last layer has one head as wide as all heads together. Edge features are not read.

    Args:
        schema: Features and targets of the data; graphs or nodes.
        num_layers: Rounds of messages.
        hidden_dim: D.
        num_heads: H, a divisor of D.
        dropout: On what each round reads, and on its attention weights.
        pooling: ``sum`` or ``mean`` for graphs, ``none`` for nodes.
    """

    def __init__(
        self,
        schema: GraphSchema,
        num_layers: Layers = 16,
        hidden_dim: Width = 176,
        num_heads: Width = 8,
        dropout: Dropout = 0.0,
        pooling: Pooling = "mean",
    ) -> None:
        from torch_geometric.nn import GATConv

        layers = _layers(GATConv, num_layers, hidden_dim, num_heads, dropout)
        super().__init__(schema, hidden_dim, layers, pooling=pooling)


class GatV2(LayerStack):
    """As `Gat`, with the attention of GATv2 and messages W_l x_j.

    Args:
        schema: Features and targets of the data; graphs or nodes.
        num_layers: Rounds of messages.
        hidden_dim: D.
        num_heads: H, a divisor of D.
        dropout: On what each round reads, and on its attention weights.
        pooling: ``sum`` or ``mean`` for graphs, ``none`` for nodes.
    """

    def __init__(
        self,
        schema: GraphSchema,
        num_layers: Layers = 16,
        hidden_dim: Width = 120,
        num_heads: Width = 8,
        dropout: Dropout = 0.0,
        pooling: Pooling = "mean",
    ) -> None:
        from torch_geometric.nn import GATv2Conv

        layers = _layers(GATv2Conv, num_layers, hidden_dim, num_heads, dropout)
        super().__init__(schema, hidden_dim, layers, pooling=pooling)


def check_gat(options: Mapping[str, Any]) -> None:
    """Raise where options of `Gat` or `GatV2` do not go together, before anything is built."""
    check_heads(options["hidden_dim"], options["num_heads"])


def _layers(
    conv: Callable[..., nn.Module], num_layers: int, hidden_dim: int, num_heads: int, dropout: float
) -> list[nn.Module]:
    layers: list[nn.Module] = []
    for heads in [num_heads] * (num_layers - 1) + [1]:
        attend = conv(hidden_dim, hidden_dim // heads, heads, dropout=dropout, add_self_loops=False, bias=False)
        layers.append(ResidualLayer(InputDropout(attend, dropout), hidden_dim, activation=F.elu))
    return layers
