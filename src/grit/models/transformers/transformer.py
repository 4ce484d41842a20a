"""Transformer on the nodes of a graph (Vaswani et al. 2017), with the node encodings of Dwivedi et al. (2022): +LapPE, +RWSE.

It is GraphGPS without message passing. Edges count for its encoding alone.

Shape letters: N nodes of the batch, B graphs, D channels, T targets.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from torch import Tensor, nn

from grit.batches.pair_batch import PairBatch
from grit.graphs.schema import GraphSchema
from grit.models.blocks import EncodedNodes, Grid, GridAttention, Output, Pooling
from grit.nn.attention.contract import check_heads
from grit.nn.heads import HEADS
from grit.nn.norm import BatchNorm
from grit.options import Dropout, Layers, Width, entry_of


class TransformerLayer(nn.Module):
    """x <- norm(x + attention(x)), then x <- norm(x + W ReLU(W x)), twice as wide between.

    Args:
        hidden_dim: D.
        num_heads: Of the attention, over all nodes of a graph.
        dropout: On the output of the attention, and twice in the FFN.
        attention_dropout: On its weights.
    """

    def __init__(self, hidden_dim: int, num_heads: int, dropout: float, attention_dropout: float) -> None:
        super().__init__()
        self.attention = GridAttention(hidden_dim, num_heads, attention_dropout)
        self.norm, self.ffn_norm = BatchNorm(hidden_dim), BatchNorm(hidden_dim)
        self.dropout = nn.Dropout(dropout)
        self.ffn = nn.Sequential(
            nn.Linear(hidden_dim, 2 * hidden_dim),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(2 * hidden_dim, hidden_dim),
            nn.Dropout(dropout),
        )

    def forward(self, x: Tensor, grid: Grid) -> Tensor:
        """(N, D) -> (N, D)."""
        attended = self.attention(grid.spread(x), grid.occupied[:, None, None, :])
        x = self.norm(x + self.dropout(grid.collect(attended)))
        out: Tensor = self.ffn_norm(x + self.ffn(x))
        return out


class Transformer(nn.Module):
    """x_i = [encode(x'_i) ‖ encode(p_i)], then layers of attention over all nodes of the graph, pooling, and a head.

    LapPE is encoded by a set function over (u_m, λ_m), other encodings by a norm and a linear map. Edges, their directions and
    features are not read, nor are the batch's pairs: a query always attends to its whole graph.

    Args:
        schema: Features and targets of the data; graphs or nodes.
        encoding: Entry of `ENCODINGS`.
        walk_steps: Its size.
        num_layers: L.
        hidden_dim: D.
        num_heads: Of the attention.
        dropout: In every layer.
        attention_dropout: On the attention weights.
        encoding_dim: Channels of the encoding among the D.
        pooling: ``sum`` or ``mean`` for graphs, ``none`` for nodes.
        head: Entry of `HEADS`.
        head_layers: Linear maps in the head.
    """

    def __init__(
        self,
        schema: GraphSchema,
        encoding: str,
        walk_steps: int,
        num_layers: Layers = 4,
        hidden_dim: Width = 120,
        num_heads: Width = 4,
        dropout: Dropout = 0.0,
        attention_dropout: Dropout = 0.5,
        encoding_dim: Width = 16,
        pooling: Pooling = "sum",
        head: Annotated[str, entry_of(HEADS)] = "halving",
        head_layers: Layers = 3,
    ) -> None:
        super().__init__()
        self.node = EncodedNodes(
            schema, encoding=encoding, walk_steps=walk_steps, hidden_dim=hidden_dim, encoding_dim=encoding_dim
        )
        self.layers = nn.ModuleList(
            TransformerLayer(hidden_dim, num_heads, dropout, attention_dropout) for _ in range(num_layers)
        )
        self.output = Output(schema, hidden_dim, pooling=pooling, num_layers=head_layers, head=head)

    def forward(self, batch: PairBatch) -> Tensor:
        """Predict: (B, T) for graphs, (N, T) for nodes."""
        x, grid = self.node(batch), Grid(batch.graphs.nodes_per_graph)
        for layer in self.layers:
            x = layer(x, grid)
        predicted: Tensor = self.output(x, batch)
        return predicted


def check_transformer(options: Mapping[str, Any]) -> None:
    """Raise where options of `Transformer` do not go together, before anything is built."""
    check_heads(options["hidden_dim"], options["num_heads"])
