"""GRPE, a graph transformer with relative positional encoding (Park et al. 2022): relations take part in every product.

    a_ij = ( q_i·k_j + q_i·(P^Q_d + E^Q_ij) + k_j·(P^K_d + E^K_ij) ) / sqrt(C),     d = distance from i to j
    x_i <- x_i + W_O Σ_j Softmax_j( a_ij ) ( v_j + P^V_d + E^V_ij ),     x <- x + FFN(x)

where q, k, v are maps of LayerNorm(x), and an FFN is LayerNorm, linear, GELU, linear. P are embeddings of the distance, E of the
edge; all layers share them. The distances of the batch's encoding have an embedding each, longer ones share one, pairs in
different components another. A task token, at a distance of its own, attends to all nodes and is what graphs are read from.

Edges count as they are listed: pair (i, j) has the edge j -> i, and parallel edges add up their embeddings. A node with itself
is a pair without an edge, as in the authors' code, so that self-loops are not seen. Distances follow the direction of edges.

Shape letters: N nodes, P pairs, B graphs, N' = N + B tokens, P' their pairs, E edges, H heads, C channels per head, D = H*C,
K distances, R rows of embeddings of relations, T targets.
"""

from collections.abc import Mapping
from typing import Annotated, Any

import torch
from pydantic import Field
from torch import Tensor, nn

from grit.batches.pair_batch import PairBatch
from grit.graphs.packed import PackedGraphs
from grit.graphs.schema import GraphSchema
from grit.models.blocks import with_virtual_nodes
from grit.models.transformers.grpe_layer import GrpeLayer, Relations
from grit.nn.attention.contract import check_heads
from grit.nn.graph_features import JoinFeatures
from grit.nn.stem import FEATURE_ENCODERS
from grit.options import Dropout, Layers, Width


class Embeddings(nn.Module):
    """The embeddings of distances and edges for one of query, key and value."""

    def __init__(self, schema: GraphSchema, num_hops: int, hidden_dim: int) -> None:
        super().__init__()
        self.hop = nn.Embedding(num_hops + 3, hidden_dim)
        self.kind = nn.Embedding(2, hidden_dim)
        self.edge = FEATURE_ENCODERS[schema.edge.kind](schema.edge, hidden_dim)

    def forward(self, edge_attr: Tensor) -> tuple[Tensor, Tensor]:
        """Edge features (E, ...) -> rows (R, D) for `Relations` to choose from, and edges (E, D)."""
        rows = torch.cat([self.hop.weight, self.kind.weight, torch.zeros_like(self.kind.weight[:1])])
        return rows, self.edge(edge_attr)


class Grpe(nn.Module):
    """Embed nodes, L layers over nodes and task tokens, LayerNorm, and a linear map.

    Args:
        schema: Features and targets of the data; graphs or nodes.
        walk_steps: K of the encoding ``spd``: the authors' max_hop, from which on distances share an embedding.
        num_layers: L.
        hidden_dim: D.
        ffn_dim: Width of the FFNs.
        num_heads: H, a divisor of D.
        dropout: After attention and FFN.
        attention_dropout: On the attention weights.
        perturb_noise: In training, uniform noise within ± this is added to the embeddings of nodes.
    """

    def __init__(
        self,
        schema: GraphSchema,
        walk_steps: int = 5,
        num_layers: Layers = 12,
        hidden_dim: Width = 80,
        ffn_dim: Width = 80,
        num_heads: Width = 8,
        dropout: Dropout = 0.1,
        attention_dropout: Dropout = 0.1,
        perturb_noise: Annotated[float, Field(ge=0.0, le=100.0)] = 0.2,
    ) -> None:
        super().__init__()
        self.level, self.num_hops, self.perturb_noise = schema.level, walk_steps, perturb_noise
        self.node = FEATURE_ENCODERS[schema.node.kind](schema.node, hidden_dim)
        self.task = nn.Parameter(torch.zeros(1, hidden_dim))
        self.embeddings = nn.ModuleList(Embeddings(schema, walk_steps, hidden_dim) for _ in ("query", "key", "value"))
        self.layers = nn.ModuleList(
            GrpeLayer(
                hidden_dim=hidden_dim,
                ffn_dim=ffn_dim,
                num_heads=num_heads,
                dropout=dropout,
                attention_dropout=attention_dropout,
            )
            for _ in range(num_layers)
        )
        self.norm = nn.LayerNorm(hidden_dim)
        self.joined = JoinFeatures(schema, hidden_dim)
        self.head = nn.Linear(hidden_dim, schema.num_outputs)

    def forward(self, batch: PairBatch) -> Tensor:
        """Predict: (B, T) for graphs, (N, T) for nodes."""
        x = self.node(batch.graphs.x)  # (N, D)
        if self.training:
            x = x + torch.empty_like(x).uniform_(-self.perturb_noise, self.perturb_noise)
        x = torch.cat([x, self.task.to(x.dtype).expand(batch.num_graphs, -1)])  # (N', D)
        relations = self.relate(batch)
        is_edge = batch.graphs.edge_index[0] != batch.graphs.edge_index[1]
        embedded = [each(batch.graphs.edge_attr[is_edge]) for each in self.embeddings]
        for layer in self.layers:
            x = layer(x, embedded, relations)
        chosen = x[: batch.num_nodes] if self.level == "node" else x[batch.num_nodes :]
        predicted: Tensor = self.head(self.joined(self.norm(chosen), batch))
        return predicted

    def relate(self, batch: PairBatch) -> Relations:
        """Distances and edges of all pairs of tokens."""
        pairs, k = batch.pairs, self.num_hops
        source, target = batch.graphs.edge_index
        is_edge = source != target
        edge_pair = pairs.edge_pair[is_edge]
        component = components(batch.graphs)
        beyond = torch.where(component[pairs.query] == component[pairs.key], k, k + 2)  # (P,)
        hop = torch.where(batch.pair_encoding.any(1), batch.pair_encoding.argmax(1), beyond)  # (P,)
        kind = torch.full_like(hop, k + 3).index_fill(0, edge_pair, k + 5)
        with_task, alone = hop.new_ones(2 * batch.num_nodes), hop.new_ones(batch.num_graphs)
        return Relations(
            tokens=with_virtual_nodes(batch, 1),
            hop=torch.cat([hop, with_task * (k + 1), alone * 0]),
            kind=torch.cat([kind, with_task * (k + 4), alone * (k + 3)]),
            source=source[is_edge],
            target=target[is_edge],
            edge_pair=edge_pair,
        )


def components(graphs: PackedGraphs) -> Tensor:
    """(N,) int64: the same number for nodes that edges join, in whatever direction, and different ones for others."""
    source, target = torch.cat([graphs.edge_index, graphs.edge_index.flip(0)], 1)
    label = torch.arange(graphs.num_nodes, device=source.device)
    while True:
        lower = label.scatter_reduce(0, target, label[source], reduce="amin")
        lower = lower[lower]
        if torch.equal(lower, label):
            return label
        label = lower


def check_grpe(options: Mapping[str, Any]) -> None:
    """Raise where options of `Grpe` do not go together, before anything is built."""
    check_heads(options["hidden_dim"], options["num_heads"])
