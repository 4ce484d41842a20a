"""GPS (Rampášek et al. 2022): layers of message passing beside attention over all nodes.

The defaults are the configuration for ZINC: with the 28 atom types that GraphGPS provides for, 423,717 parameters, as published.

Shape letters: N nodes of the batch, E edges, B graphs, D channels.
"""

from collections.abc import Mapping
from typing import Annotated, Any

import torch.nn.functional as F
from torch import Tensor, nn

from grit.batches.pair_batch import PairBatch
from grit.graphs.schema import GraphSchema
from grit.models.blocks import EncodedNodes, GatedGcnLayer, Grid, Output
from grit.nn.activation import ACTIVATIONS, activation_function
from grit.nn.attention.contract import check_heads
from grit.nn.heads import HEADS
from grit.nn.norm import BatchNorm
from grit.nn.stem import FEATURE_ENCODERS
from grit.options import Dropout, Layers, Width, entry_of


class GineLayer(nn.Module):
    """x_i <- x_i + MLP(x_i + Σ_j ReLU(x_j + e_ji)); edges stay as they are. Arguments as those of `GatedGcnLayer`."""

    def __init__(self, hidden_dim: int, *, dropout: float = 0.0, activation: str = "relu") -> None:
        from torch_geometric.nn import GINEConv

        super().__init__()
        self.dropout = dropout
        self.conv = GINEConv(_Mlp(hidden_dim, hidden_dim, activation))

    def forward(
        self, x: Tensor, edge: Tensor, edge_index: Tensor, *, update_edges: bool = True
    ) -> tuple[Tensor, Tensor]:
        """Nodes (N, D) and edges (E, D) -> the same."""
        return x + F.dropout(self.conv(x, edge_index, edge), self.dropout, self.training), edge


# Message passing with a residual: hidden_dim, and dropout and activation as keywords -> (nodes, edges, edge_index) -> both.
LOCAL_LAYERS: dict[str, type[nn.Module]] = {"gine": GineLayer, "gatedgcn": GatedGcnLayer}


class GpsLayer(nn.Module):
    """y <- norm(local(x, e)) + norm(x + attention(x)), then x <- norm(y + FFN(y)), with batch normalisation.

    Args:
        hidden_dim: D.
        num_heads: Of the attention.
        local: Entry of `LOCAL_LAYERS`, which has a residual of its own.
        dropout: After message passing, attention, and each map of the FFN.
        attention_dropout: On the attention's weights.
        activation: Entry of `ACTIVATIONS`.
    """

    def __init__(
        self,
        hidden_dim: int,
        *,
        num_heads: int,
        local: str,
        dropout: float,
        attention_dropout: float,
        activation: str,
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.local = LOCAL_LAYERS[local](hidden_dim, dropout=dropout, activation=activation)
        self.attention = nn.MultiheadAttention(hidden_dim, num_heads, dropout=attention_dropout, batch_first=True)
        self.local_norm, self.attention_norm, self.norm = (BatchNorm(hidden_dim) for _ in range(3))
        self.ffn = _Mlp(hidden_dim, 2 * hidden_dim, activation, dropout=dropout)

    def forward(
        self, x: Tensor, edge: Tensor, edge_index: Tensor, grid: Grid, *, update_edges: bool
    ) -> tuple[Tensor, Tensor]:
        """Nodes (N, D) and edges (E, D) -> the same."""
        local, edge = self.local(x, edge, edge_index, update_edges=update_edges)
        rows = grid.spread(x)  # (B, n, D)
        attended = self.attention(rows, rows, rows, key_padding_mask=~grid.occupied, need_weights=False)[0]
        attended = F.dropout(grid.collect(attended), self.dropout, self.training)  # (N, D)
        x = self.local_norm(local) + self.attention_norm(x + attended)
        return self.norm(x + F.dropout(self.ffn(x), self.dropout, self.training)), edge


class Gps(nn.Module):
    """Ten layers of `GpsLayer`, then sum over nodes for graphs, and a head.

    Nodes begin with features and encoding side by side (`grit.models.blocks.encoded_nodes.EncodedNodes`), return probabilities of
    20 steps for ZINC. Messages go along the listed edges; attention sees all nodes of the graph, whatever pairs the batch has.

    Args:
        schema: Features and targets of the data; graphs or nodes.
        encoding: Of the batches, entry of `ENCODINGS`.
        walk_steps: Its size.
        num_layers: Rounds.
        hidden_dim: Width.
        encoding_dim: Of which the encoding has so much.
        num_heads: Of the attention.
        local: The message passing inside, entry of `LOCAL_LAYERS`.
        dropout: After message passing, attention, and each map of the FFN.
        attention_dropout: On the attention's weights.
        activation: Of message passing, FFN and head, entry of `ACTIVATIONS`.
        pooling: ``sum`` or ``mean`` for graphs, ``none`` for nodes.
        head: Entry of `HEADS`.
        head_layers: Linear maps in the head.
    """

    def __init__(
        self,
        schema: GraphSchema,
        encoding: str = "rwse",
        walk_steps: int = 21,
        num_layers: Layers = 10,
        hidden_dim: Width = 64,
        encoding_dim: Width = 28,
        num_heads: Width = 4,
        local: Annotated[str, entry_of(LOCAL_LAYERS)] = "gine",
        dropout: Dropout = 0.0,
        attention_dropout: Dropout = 0.5,
        activation: Annotated[str, entry_of(ACTIVATIONS)] = "relu",
        pooling: str = "sum",
        head: Annotated[str, entry_of(HEADS)] = "halving",
        head_layers: Layers = 3,
    ) -> None:
        super().__init__()
        self.node = EncodedNodes(
            schema, encoding=encoding, walk_steps=walk_steps, hidden_dim=hidden_dim, encoding_dim=encoding_dim
        )
        self.edge = FEATURE_ENCODERS[schema.edge.kind](schema.edge, hidden_dim)
        self.layers = nn.ModuleList(
            GpsLayer(
                hidden_dim,
                num_heads=num_heads,
                local=local,
                dropout=dropout,
                attention_dropout=attention_dropout,
                activation=activation,
            )
            for _ in range(num_layers)
        )
        self.output = Output(
            schema, hidden_dim, pooling=pooling, num_layers=head_layers, head=head, activation=activation
        )

    def forward(self, batch: PairBatch) -> Tensor:
        """Predict: (B, T) for graphs, (N, T) for nodes."""
        x, edge = self.node(batch), self.edge(batch.graphs.edge_attr)  # (N, D), (E, D)
        grid = Grid(batch.graphs.nodes_per_graph)
        for number, layer in enumerate(self.layers, start=1):
            # What the last layer would write to the edges is read by nobody.
            x, edge = layer(x, edge, batch.graphs.edge_index, grid, update_edges=number < len(self.layers))
        predicted: Tensor = self.output(x, batch)
        return predicted


class _Mlp(nn.Module):
    """W_2 drop(act(W_1 x)): D -> inner_dim -> D."""

    def __init__(self, dim: int, inner_dim: int, activation: str, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(dim, inner_dim), nn.Linear(inner_dim, dim)
        self.activation, self.dropout = activation_function(activation), dropout

    def forward(self, x: Tensor) -> Tensor:
        mapped: Tensor = self.second(F.dropout(self.activation(self.first(x)), self.dropout, self.training))
        return mapped


def check_gps(options: Mapping[str, Any]) -> None:
    """Raise where options of `Gps` do not go together, before anything is built."""
    check_heads(options["hidden_dim"], options["num_heads"])
