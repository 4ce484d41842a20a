"""SAN (Kreuzer et al. 2021): attention over real and fake edges, each with maps of its own, and learned LapPE.

Shape letters: N nodes of the batch, E edges, B graphs, n places of the largest, H heads, C channels per head, D = H*C.
"""

from collections.abc import Mapping
from math import sqrt
from typing import Annotated, Any

import torch
from pydantic import Field
from torch import Tensor, nn

from grit.batches.pair_batch import PairBatch
from grit.graphs.packed import PackedGraphs
from grit.graphs.schema import GraphSchema
from grit.models.blocks import EncodedNodes, Grid, Output, Pooling
from grit.models.blocks.frequencies import FrequencyTransformer
from grit.models.blocks.grid import split_heads
from grit.nn.attention.contract import check_heads
from grit.nn.heads import HEADS
from grit.nn.norm import BatchNorm
from grit.nn.stem import FEATURE_ENCODERS
from grit.options import Dropout, Layers, Width, entry_of

_CLAMP = 5.0


class RealFakeAttention(nn.Module):
    """x̂_i = Σ_j w_ij W_V x_j / (Σ_j w_ij + 1e-6), heads side by side.

        w_ij = 1/(1+γ) Σ_{edges j -> i} exp( Σ_c (W_Q x_i)_c (W_K x_j)_c (W_E e_ji)_c / sqrt(C) )
             + γ/(1+γ) exp( Σ_c (W_Q' x_i)_c (W_K' x_j)_c (W_E' e')_c / sqrt(C) )     if (i, j) is a fake edge

    with exponents kept within ±5, e' one learned vector for all fake edges, and no map with a bias.

    Args:
        hidden_dim: D.
        num_heads: H, a divisor of D.
        gamma: γ.
    """

    def __init__(self, hidden_dim: int, num_heads: int, gamma: float) -> None:
        super().__init__()
        check_heads(hidden_dim, num_heads)
        self.num_heads, self.gamma = num_heads, gamma
        self.query, self.key, self.edge, self.fake_query, self.fake_key, self.fake_edge, self.value = (
            nn.Linear(hidden_dim, hidden_dim, bias=False) for _ in range(7)
        )

    def forward(self, x: Tensor, edge: Tensor, fake: Tensor, batch: PairBatch, grid: Grid, is_fake: Tensor) -> Tensor:
        """Attend: (N, D) -> (N, D).

        Args:
            x: Nodes, (N, D).
            edge: Edges, (E, D).
            fake: e', (1, D).
            batch: With the edges.
            grid: Of the batch.
            is_fake: (B, 1, n, n), which pairs are fake edges.
        """
        weights = self._real(x, edge, batch.graphs, grid) + self._fake(x, fake, grid) * is_fake  # (B, H, n, n)
        total = weights @ split_heads(grid.spread(self.value(x)), self.num_heads)  # (B, H, n, C)
        mixed = total / (weights.sum(-1, keepdim=True) + 1e-6)
        return grid.collect(mixed.transpose(1, 2).flatten(2))

    def _real(self, x: Tensor, edge: Tensor, graphs: PackedGraphs, grid: Grid) -> Tensor:
        source, target = graphs.edge_index
        query, key = self.query(x).index_select(0, target), self.key(x).index_select(0, source)
        products = (query * key * self.edge(edge)).view(
            source.numel(), self.num_heads, x.shape[1] // self.num_heads
        )  # (E, H, C)
        return grid.add_pairs(self._weigh(products.sum(-1), products.shape[-1]), target, source) / (1 + self.gamma)

    def _fake(self, x: Tensor, fake: Tensor, grid: Grid) -> Tensor:
        # e' is the same everywhere, so that it may scale the queries instead of every pair.
        query = split_heads(grid.spread(self.fake_query(x) * self.fake_edge(fake)), self.num_heads)
        key = split_heads(grid.spread(self.fake_key(x)), self.num_heads)
        return self._weigh(query @ key.mT, query.shape[-1]) * (self.gamma / (1 + self.gamma))

    def _weigh(self, products: Tensor, channels: int) -> Tensor:
        return (products / sqrt(channels)).clamp(-_CLAMP, _CLAMP).exp()


class SanLayer(nn.Module):
    """x <- norm(x + W_O attention(x)), then x <- norm(x + W ReLU(W x)), twice as wide between.

    Args:
        hidden_dim: D.
        num_heads: H.
        gamma: γ.
        dropout: On the output of the attention and inside the FFN.
    """

    def __init__(self, hidden_dim: int, num_heads: int, gamma: float, dropout: float) -> None:
        super().__init__()
        self.attention = RealFakeAttention(hidden_dim, num_heads, gamma)
        self.dropout = nn.Dropout(dropout)
        self.out = nn.Linear(hidden_dim, hidden_dim)
        self.norm, self.ffn_norm = BatchNorm(hidden_dim), BatchNorm(hidden_dim)
        self.ffn = nn.Sequential(
            nn.Linear(hidden_dim, 2 * hidden_dim), nn.ReLU(), nn.Dropout(dropout), nn.Linear(2 * hidden_dim, hidden_dim)
        )

    def forward(self, x: Tensor, edge: Tensor, fake: Tensor, batch: PairBatch, grid: Grid, is_fake: Tensor) -> Tensor:
        """(N, D) -> (N, D); arguments as in `RealFakeAttention`."""
        attended = self.attention(x, edge, fake, batch, grid, is_fake)
        x = self.norm(x + self.out(self.dropout(attended)))
        out: Tensor = self.ffn_norm(x + self.ffn(x))
        return out


class San(nn.Module):
    """x_i = [encode(x'_i) ‖ encode(p_i)], then layers of attention over real and fake edges, pooling, and a head.

    LapPE is encoded by a Transformer over the frequencies of each node, other encodings by a norm and a linear map.

    Real edges are the listed ones, as they are directed, self-loops among them; parallel ones count one by one. Fake edges are
    the other pairs of the batch, except of a node with itself. With ``pairs: edges`` there are none (SAN's sparse form). A node
    without real edges attends to its fake ones alone, however small γ.

    Args:
        schema: Features and targets of the data; graphs or nodes.
        encoding: Entry of `ENCODINGS`.
        walk_steps: Its size.
        num_layers: L.
        hidden_dim: D.
        num_heads: H, a divisor of D.
        gamma: γ, how much fake edges count beside real ones.
        dropout: In every layer.
        encoding_dim: Channels of the encoding among the D.
        encoding_layers: Of the Transformer over frequencies.
        encoding_heads: Of its attention, a divisor of ``encoding_dim``.
        pooling: ``sum`` or ``mean`` for graphs, ``none`` for nodes.
        head: Entry of `HEADS`.
        head_layers: Linear maps in the head.
    """

    def __init__(
        self,
        schema: GraphSchema,
        encoding: str,
        walk_steps: int,
        num_layers: Layers = 10,
        hidden_dim: Width = 56,
        num_heads: Width = 8,
        gamma: Annotated[float, Field(ge=0.0)] = 1e-5,
        dropout: Dropout = 0.0,
        encoding_dim: Width = 8,
        encoding_layers: Layers = 2,
        encoding_heads: Width = 4,
        pooling: Pooling = "sum",
        head: Annotated[str, entry_of(HEADS)] = "halving",
        head_layers: Layers = 3,
    ) -> None:
        super().__init__()
        self.node = EncodedNodes(
            schema,
            encoding=encoding,
            walk_steps=walk_steps,
            hidden_dim=hidden_dim,
            encoding_dim=encoding_dim,
            frequencies=lambda dim: FrequencyTransformer(dim, encoding_layers, encoding_heads),
        )
        self.edge = FEATURE_ENCODERS[schema.edge.kind](schema.edge, hidden_dim)
        self.fake = nn.Parameter(torch.randn(1, hidden_dim))
        self.layers = nn.ModuleList(SanLayer(hidden_dim, num_heads, gamma, dropout) for _ in range(num_layers))
        self.output = Output(schema, hidden_dim, pooling=pooling, num_layers=head_layers, head=head)

    def forward(self, batch: PairBatch) -> Tensor:
        """Predict: (B, T) for graphs, (N, T) for nodes."""
        x, edge, grid = self.node(batch), self.edge(batch.graphs.edge_attr), Grid(batch.graphs.nodes_per_graph)
        is_fake = fake_edges(batch, grid)
        for layer in self.layers:
            x = layer(x, edge, self.fake, batch, grid, is_fake)
        predicted: Tensor = self.output(x, batch)
        return predicted


def fake_edges(batch: PairBatch, grid: Grid) -> Tensor:
    """(B, 1, n, n) bool: pairs of the batch that are no edges, and not of a node with itself."""
    source, target = batch.graphs.edge_index
    pairs, edges = grid.mark_pairs(batch.pairs.query, batch.pairs.key), grid.mark_pairs(target, source)
    return pairs & ~edges & ~torch.eye(grid.size, dtype=torch.bool, device=source.device)


def check_san(options: Mapping[str, Any]) -> None:
    """Raise where options of `San` do not go together, before anything is built."""
    check_heads(options["hidden_dim"], options["num_heads"])
    check_heads(options["encoding_dim"], options["encoding_heads"])
