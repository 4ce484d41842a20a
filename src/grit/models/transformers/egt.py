"""EGT, the edge-augmented graph transformer (Hussain et al. 2022): channels of nodes and of pairs, updated side by side.

    ê_ij = clip( (W_Q h_i)·(W_K h_j) / sqrt(C), ±5 ) + W_E e_ij
    h_i <- h_i + W_O Σ_j Softmax_j( ê_ij ) sigmoid( W_G e_ij ) W_V h_j      h <- h + FFN(h)
    e_ij <- e_ij + W_R ê_ij                                                e <- e + FFN(e)

where h and e on the right are normalised by LayerNorm, and an FFN is LayerNorm, linear, ELU, linear. With the degree scaler,
the sum over j is multiplied by ln(1 + Σ_j sigmoid(W_G e_ij)).

A node begins as its features plus a map of its singular vectors, whose signs are drawn anew at every training step, alike for
a left vector and its right one. A pair begins as the features of its edge plus whether it is an edge (a node with itself
counts), or plus its distance. Pair (i, j) reads the edge j -> i; parallel edges add up their features.

Shape letters: N nodes, P pairs, B graphs, V virtual nodes of each graph, N' = N + B V tokens, P' their pairs, H heads,
C channels per head, D = H*C, F channels of a pair, K singular values, T targets.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from grit.batches.pair_batch import PairBatch
from grit.encodings import encoding_kind
from grit.encodings.spd import spd_encoding
from grit.graphs.schema import GraphSchema
from grit.models.blocks import with_virtual_nodes
from grit.models.transformers.egt_layer import EgtLayer, scaled_width
from grit.nn.attention.contract import check_heads
from grit.nn.graph_features import JoinFeatures
from grit.nn.heads import sum_per_graph
from grit.nn.stem import FEATURE_ENCODERS
from grit.options import Dropout, Layers, Width

_Factor = Annotated[float, Field(gt=0.0, le=100.0)]


class Egt(nn.Module):
    """Embed nodes and pairs, L layers, LayerNorm, mean over nodes (or the virtual nodes side by side), and a head.

    Args:
        schema: Features and targets of the data; graphs or nodes.
        encoding: Of the batches: ``svd-loops`` as published, ``svd``, or ``none``.
        walk_steps: K, the number of singular values.
        num_layers: L.
        hidden_dim: D.
        edge_dim: F.
        num_heads: H, a divisor of D.
        ffn_factor: Width of the FFNs, in multiples of D and of F.
        dropout: After attention and FFN, of nodes and pairs.
        attention_dropout: On the gated attention weights.
        max_hop: 0 to tell pairs that are edges from others; k to tell distances up to k, longer ones sharing an embedding.
        virtual_nodes: V.
        degree: ``scaler`` to multiply by ln(1 + the sum of the gates), except at virtual nodes; or ``none``.
        head_factor: Each hidden layer of the head is this many times as wide as the one before.
    """

    def __init__(
        self,
        schema: GraphSchema,
        encoding: str = "svd-loops",
        walk_steps: int = 8,
        num_layers: Layers = 10,
        hidden_dim: Width = 64,
        edge_dim: Width = 64,
        num_heads: Width = 8,
        ffn_factor: _Factor = 2.0,
        dropout: Dropout = 0.0,
        attention_dropout: Dropout = 0.0,
        max_hop: Annotated[int, Field(ge=0, le=1000)] = 0,
        virtual_nodes: Annotated[int, Field(ge=0, le=1000)] = 0,
        degree: Literal["scaler", "none"] = "none",
        head_factor: _Factor = 0.5,
    ) -> None:
        super().__init__()
        self.level, self.max_hop, self.num_virtual = schema.level, max_hop, virtual_nodes
        self.node = FEATURE_ENCODERS[schema.node.kind](schema.node, hidden_dim)
        self.edge = None if schema.edge.kind == "none" else FEATURE_ENCODERS[schema.edge.kind](schema.edge, edge_dim)
        width = encoding_kind(encoding).node_dim(walk_steps)
        self.position = nn.Linear(width, hidden_dim) if width else None
        self.structure = nn.Embedding(max_hop + 2, edge_dim) if max_hop else nn.Linear(1, edge_dim)
        if virtual_nodes:
            self.virtual_node = nn.Parameter(torch.randn(virtual_nodes, hidden_dim))
            self.virtual_edge = nn.Parameter(torch.randn(virtual_nodes, edge_dim))
        self.layers = nn.ModuleList(
            EgtLayer(
                hidden_dim=hidden_dim,
                edge_dim=edge_dim,
                num_heads=num_heads,
                ffn_factor=ffn_factor,
                dropout=dropout,
                attention_dropout=attention_dropout,
                scales_degree=degree == "scaler",
                updates_pairs=layer < num_layers - 1,
            )
            for layer in range(num_layers)
        )
        self.norm = nn.LayerNorm(hidden_dim)
        pooled = hidden_dim * (virtual_nodes or 1) if schema.level == "graph" else hidden_dim
        self.joined = JoinFeatures(schema, pooled)
        widths = [pooled, *(scaled_width(hidden_dim, head_factor**place) for place in (1, 2))]
        hidden = [module for a, b in pairwise(widths) for module in (nn.Linear(a, b), nn.ELU())]
        self.head = nn.Sequential(*hidden, nn.Linear(widths[-1], schema.num_outputs))

    def forward(self, batch: PairBatch) -> Tensor:
        """Predict: (B, T) for graphs, (N, T) for nodes."""
        x = self.node(batch.graphs.x)  # (N, D)
        if self.position is not None:
            x = x + self.position(self.signed(batch))
        pair = self.embed_pairs(batch)  # (P, F)
        if self.num_virtual:
            x, pair = self._add_virtual(x, pair, batch.num_graphs)
        tokens = with_virtual_nodes(batch, self.num_virtual)
        for layer in self.layers:
            x, pair = layer(x, pair, tokens, batch.num_nodes)  # (N', D), (P', F)
        predicted: Tensor = self.head(self.joined(self._pool(self.norm(x), batch), batch))
        return predicted

    def signed(self, batch: PairBatch) -> Tensor:
        """The singular vectors at each node, (N, 2K), in training with a random sign for each pair of a left and a right one."""
        if not self.training:
            return batch.node_encoding
        halves = batch.node_encoding.view(batch.num_nodes, 2, -1)  # (N, 2, K)
        signs = torch.randint(0, 2, (batch.num_graphs, 1, halves.shape[2]), device=halves.device) * 2 - 1
        return (halves * signs[batch.graphs.graph_of_node]).flatten(1)

    def embed_pairs(self, batch: PairBatch) -> Tensor:
        """What is known of each pair at the beginning: (P, F)."""
        pairs = batch.pairs
        if self.max_hop:
            first = spd_encoding(batch.graphs, pairs, self.max_hop + 1, torch.float32).pair  # (P, max_hop + 1)
            pair: Tensor = self.structure(torch.where(first.any(1), first.argmax(1), self.max_hop + 1))
        else:
            joined = (pairs.query == pairs.key).to(batch.node_encoding.dtype)
            pair = self.structure(joined.index_fill(0, pairs.edge_pair, 1.0).unsqueeze(1))
        if self.edge is not None:
            pair = pair.index_add(0, pairs.edge_pair, self.edge(batch.graphs.edge_attr).to(pair.dtype))
        return pair

    def _add_virtual(self, x: Tensor, pair: Tensor, num_graphs: int) -> tuple[Tensor, Tensor]:
        with_nodes = self.virtual_edge.repeat(x.shape[0], 1)  # (N V, F)
        among = (self.virtual_edge.unsqueeze(1) + self.virtual_edge) / 2  # (V, V, F)
        return (
            torch.cat([x, self.virtual_node.repeat(num_graphs, 1)]),
            torch.cat([pair, with_nodes, with_nodes, among.flatten(0, 1).repeat(num_graphs, 1)]),
        )

    def _pool(self, x: Tensor, batch: PairBatch) -> Tensor:
        if self.level == "node":
            return x[: batch.num_nodes]
        if self.num_virtual:
            return x[batch.num_nodes :].view(batch.num_graphs, -1)
        return sum_per_graph(x, batch) / batch.graphs.nodes_per_graph.unsqueeze(1).to(x.dtype)


def check_egt(options: Mapping[str, Any]) -> None:
    """Raise where options of `Egt` do not go together, before anything is built."""
    check_heads(options["hidden_dim"], options["num_heads"])
