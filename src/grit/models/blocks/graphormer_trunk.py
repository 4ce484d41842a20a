"""The layers of Graphormer and of its descendants.

Every graph has one more token than nodes, at place 0, from which the graph is predicted; it has a distance of its own to all.

Shape letters: N nodes of the batch, P pairs, B graphs, n places (token and nodes), H heads, D channels, T targets.
"""

from math import sqrt
from typing import Literal

import torch
from torch import Tensor, nn

from grit.batches.pair_batch import PairBatch
from grit.graphs.schema import GraphSchema
from grit.models.blocks.grid import Grid, GridAttention
from grit.nn.graph_features import JoinFeatures
from grit.nn.stem import FEATURE_ENCODERS

Release = Literal["first", "second"]
_DEVIATION = 0.02  # of all weights at the start


class GraphormerLayer(nn.Module):
    """First release: x <- x + f(norm(x)); second: x <- norm(x + f(x)); f being attention, then W GELU(W x).

    Args:
        hidden_dim: D.
        ffn_dim: Width between the two maps.
        num_heads: H.
        dropout: On the output of each f.
        attention_dropout: On the attention weights.
        activation_dropout: After GELU.
        release: See `GraphormerTrunk`.
    """

    def __init__(
        self,
        hidden_dim: int,
        ffn_dim: int,
        num_heads: int,
        *,
        dropout: float,
        attention_dropout: float,
        activation_dropout: float,
        release: Release,
    ) -> None:
        super().__init__()
        self.norm_first = release == "first"
        self.attention = GridAttention(hidden_dim, num_heads, attention_dropout)
        self.norm, self.ffn_norm = nn.LayerNorm(hidden_dim), nn.LayerNorm(hidden_dim)
        self.dropout = nn.Dropout(dropout)
        self.ffn = nn.Sequential(
            nn.Linear(hidden_dim, ffn_dim), nn.GELU(), nn.Dropout(activation_dropout), nn.Linear(ffn_dim, hidden_dim)
        )

    def forward(self, x: Tensor, allowed: Tensor, bias: Tensor, factor: Tensor | None) -> Tensor:
        """(B, n, D) -> (B, n, D); arguments as in `GridAttention`."""
        out: Tensor
        if self.norm_first:
            x = x + self.dropout(self.attention(self.norm(x), allowed, bias, factor))
            out = x + self.dropout(self.ffn(self.ffn_norm(x)))
        else:
            x = self.norm(x + self.dropout(self.attention(x, allowed, bias, factor)))
            out = self.ffn_norm(x + self.dropout(self.ffn(x)))
        return out


class GraphormerTrunk(nn.Module):
    """x_i = encode(x'_i) + z⁻(in-degree) + z⁺(out-degree), layers, and a prediction from the token, or from every node.

    Args:
        schema: Features and targets of the data; graphs or nodes.
        num_layers: L.
        hidden_dim: D.
        ffn_dim: Width of the FFNs.
        num_heads: H.
        dropout: On the input and in every layer.
        attention_dropout: On the attention weights.
        activation_dropout: Inside the FFNs.
        max_degree: Larger degrees share its row.
        release: Of the authors' code. ``first``: norms before attention and FFN and at the end, a linear map predicts.
            ``second``: a norm at the input and after attention and FFN, W norm(GELU(W x)) predicts.
    """

    def __init__(
        self,
        schema: GraphSchema,
        *,
        num_layers: int,
        hidden_dim: int,
        ffn_dim: int,
        num_heads: int,
        dropout: float,
        attention_dropout: float,
        activation_dropout: float,
        max_degree: int,
        release: Release,
    ) -> None:
        super().__init__()
        self.node = FEATURE_ENCODERS[schema.node.kind](schema.node, hidden_dim)
        self.in_degree, self.out_degree = (nn.Embedding(max_degree + 1, hidden_dim) for _ in range(2))
        self.token = nn.Embedding(1, hidden_dim)
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(
            GraphormerLayer(
                hidden_dim,
                ffn_dim,
                num_heads,
                dropout=dropout,
                attention_dropout=attention_dropout,
                activation_dropout=activation_dropout,
                release=release,
            )
            for _ in range(num_layers)
        )
        is_first = release == "first"
        self.input_norm = nn.Identity() if is_first else nn.LayerNorm(hidden_dim)
        self.last_norm = nn.LayerNorm(hidden_dim) if is_first else nn.Identity()
        hidden = [] if is_first else [nn.Linear(hidden_dim, hidden_dim), nn.GELU(), nn.LayerNorm(hidden_dim)]
        self.joined = JoinFeatures(schema, hidden_dim)
        self.head = nn.Sequential(*hidden, nn.Linear(hidden_dim, schema.num_outputs))
        self.of_nodes = schema.level == "node"

    def forward(self, batch: PairBatch, grid: Grid, near: Tensor, bias: Tensor, factor: Tensor | None = None) -> Tensor:
        """Predict: (B, T) for graphs, (N, T) for nodes.

        Args:
            batch: The batch.
            grid: Of the batch, with one token.
            near: (P,) bool, which pairs attend.
            bias: (B, H, n, n), added to the logits.
            factor: (B, H, n, n), multiplied with the weights; None for 1.
        """
        allowed = grid.mark_pairs(batch.pairs.query[near], batch.pairs.key[near])  # (B, 1, n, n)
        allowed[:, :, :, 0] = True
        allowed[:, :, 0, :] = grid.occupied.unsqueeze(1)
        x = grid.spread(self._nodes(batch))  # (B, n, D)
        x = torch.cat([self.token.weight.expand(x.shape[0], 1, -1).to(x.dtype), x[:, 1:]], 1)
        x = self.dropout(self.input_norm(x))
        for layer in self.layers:
            x = layer(x, allowed, bias, factor)
        x = self.last_norm(x)
        predicted: Tensor = self.head(self.joined(grid.collect(x) if self.of_nodes else x[:, 0], batch))
        return predicted

    def _nodes(self, batch: PairBatch) -> Tensor:
        arriving = torch.bincount(batch.graphs.edge_index[1], minlength=batch.num_nodes)
        largest = self.in_degree.num_embeddings - 1
        degrees = self.in_degree(arriving.clamp(max=largest)) + self.out_degree(batch.degree.clamp(max=largest))
        x: Tensor = self.node(batch.graphs.x) + degrees
        return x


def initialise(model: nn.Module, num_layers: int, release: Release) -> None:
    """Weights from a normal distribution, biases 0: of maps the narrower the more layers there are, in the first release."""
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=_DEVIATION / (sqrt(num_layers) if release == "first" else 1.0))
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=_DEVIATION)
