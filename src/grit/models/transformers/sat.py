"""SAT, structure-aware transformer (Chen, O'Bray and Borgwardt 2022): attention between subgraphs, values from nodes.

    s_i = W_S norm([x_i ‖ Σ_j GNN(x on the k-hop subgraph of i)_j])          k-subgraph, the rows of the paper
    s_i = W_S norm([x_i ‖ GNN_1(x)_i ‖ ... ‖ GNN_k(x)_i])                    k-subtree, on the graph itself
    x <- norm(x + (1 + d_i)^(-1/2) W_O Σ_j softmax_j(W_Q s_i · W_K s_j / sqrt(C)) W_V x_j),  then  x <- norm(x + FFN(x))

The GNN is PNA with mean, sum and max, a ReLU after each of its k layers. Subgraphs ignore the directions of edges; messages
within them follow the listed edges, each of them once. d_i is the number of listed edges that leave i.

Shape letters: N nodes of the batch, E edges, M members of all subgraphs, P node pairs, H heads, C channels per head, D = H*C.
"""

from collections.abc import Mapping
from typing import Any, Literal

import torch
from torch import Tensor, nn

from grit.batches.pair_batch import PairBatch
from grit.encodings import encoding_kind
from grit.errors import GritError
from grit.graphs.schema import GraphSchema
from grit.models.blocks import FewRowsNorm
from grit.models.transformers.sat_extractors import EXTRACTORS
from grit.nn.attention.contract import check_heads
from grit.nn.attention.dot_product import attend, scaled_products
from grit.nn.graph_features import JoinFeatures
from grit.nn.heads import readout_class
from grit.nn.stem import FEATURE_ENCODERS
from grit.options import Dropout, Layers, Width

_WITH_CONSTANT = ("rwse", "rrwp")  # encodings whose first channel is 1 for every node


def sat_structures(options: Mapping[str, Any]) -> tuple[str, ...]:
    """What `Sat` reads of a batch besides nodes, edges and pairs."""
    return (f"egonets-{options['num_hops']}",) if options["extractor"] == "subgraph" else ()


def check_sat(options: Mapping[str, Any]) -> None:
    """Raise where options of `Sat` do not go together."""
    check_heads(options["hidden_dim"], options["num_heads"])
    if options["hidden_dim"] % options["towers"]:
        raise GritError(f"hidden_dim {options['hidden_dim']} cannot be divided by towers {options['towers']}")


class Sat(nn.Module):
    """Attention whose queries and keys are subgraphs, then a mean over nodes for graphs, and an MLP.

    Args:
        schema: Features and targets of the data; graphs or nodes.
        encoding: Of the batches; its node part is added to the features, without a channel that is always 1.
        walk_steps: Its size.
        num_layers: Of the transformer.
        hidden_dim: D.
        num_heads: H.
        num_hops: k, steps that a subgraph reaches, and layers of the GNN.
        extractor: ``subgraph`` or ``subtree``, as above.
        towers: Parts into which PNA divides the channels.
        edge_dim: Channels of edge features.
        dropout: On attention weights, after attention, within and after the FFN.
        pooling: ``mean`` or ``sum`` over the nodes of a graph; ``none`` for nodes.
    """

    def __init__(
        self,
        schema: GraphSchema,
        encoding: str,
        walk_steps: int,
        num_layers: Layers = 6,
        hidden_dim: Width = 64,
        num_heads: Width = 8,
        num_hops: Width = 3,
        extractor: Literal["subgraph", "subtree"] = "subgraph",
        towers: Width = 4,
        edge_dim: Width = 32,
        dropout: Dropout = 0.2,
        pooling: Literal["mean", "sum", "none"] = "mean",
    ) -> None:
        super().__init__()
        self.node = FEATURE_ENCODERS[schema.node.kind](schema.node, hidden_dim)
        self.first_channel = int(encoding in _WITH_CONSTANT)
        position_dim = encoding_kind(encoding).node_dim(walk_steps) - self.first_channel
        self.position = nn.Linear(position_dim, hidden_dim) if position_dim > 0 else None
        with_edges = schema.edge.kind != "none"
        self.edge = FEATURE_ENCODERS[schema.edge.kind](schema.edge, edge_dim) if with_edges else None
        sizes = {"num_layers": num_hops, "towers": towers, "edge_dim": edge_dim if with_edges else None}
        self.layers = nn.ModuleList(
            SatLayer(
                EXTRACTORS[extractor](hidden_dim, **sizes), hidden_dim=hidden_dim, num_heads=num_heads, dropout=dropout
            )
            for _ in range(num_layers)
        )
        self.readout = readout_class(schema.level, pooling)(hidden_dim)
        self.joined = JoinFeatures(schema, hidden_dim)
        self.head = nn.Sequential(
            nn.Linear(hidden_dim, hidden_dim), nn.ReLU(), nn.Linear(hidden_dim, schema.num_outputs)
        )

    def forward(self, batch: PairBatch) -> Tensor:
        """Predict: (B, T) for graphs, (N, T) for nodes."""
        x = self.node(batch.graphs.x)
        if self.position is not None:
            x = x + self.position(batch.node_encoding[:, self.first_channel :])
        edge = None if self.edge is None else self.edge(batch.graphs.edge_attr)
        for layer in self.layers:
            x = layer(x, edge, batch)
        predicted: Tensor = self.head(self.joined(self.readout(x, x, batch), batch))
        return predicted


class SatLayer(nn.Module):
    """Structure-aware attention and a feed-forward network, each with a residual and a norm after it.

    Args:
        extractor: (x, edge, batch) -> s, (N, D).
        hidden_dim: D.
        num_heads: H.
        dropout: See `Sat`.
    """

    def __init__(self, extractor: nn.Module, *, hidden_dim: int, num_heads: int, dropout: float) -> None:
        super().__init__()
        self.extractor, self.num_heads = extractor, num_heads
        self.query_key = nn.Linear(hidden_dim, 2 * hidden_dim, bias=False)
        self.value = nn.Linear(hidden_dim, hidden_dim, bias=False)
        for linear in (self.query_key, self.value):
            nn.init.xavier_uniform_(linear.weight)
        self.out = nn.Linear(hidden_dim, hidden_dim)
        self.widen, self.narrow = nn.Linear(hidden_dim, 2 * hidden_dim), nn.Linear(2 * hidden_dim, hidden_dim)
        self.attention_norm, self.mlp_norm = FewRowsNorm(hidden_dim), FewRowsNorm(hidden_dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, edge: Tensor | None, batch: PairBatch) -> Tensor:
        """Update: x (N, D), edge (E, edge_dim) -> (N, D)."""
        value = self.value(x).view(x.shape[0], self.num_heads, -1)  # (N, H, C)
        dropout = self.dropout.p if self.training else 0.0
        attended = attend(self.logits(x, edge, batch), value, batch.pairs, clamp=None, attention_dropout=dropout)
        scale = (1 + batch.degree).to(x.dtype).rsqrt().unsqueeze(1)  # (N, 1)
        x = self.attention_norm(x + self.dropout(scale * self.out(attended.node)))
        hidden = self.dropout(torch.relu(self.widen(x)))
        updated: Tensor = self.mlp_norm(x + self.dropout(self.narrow(hidden)))
        return updated

    def logits(self, x: Tensor, edge: Tensor | None, batch: PairBatch) -> Tensor:
        """What each query makes of its keys before the softmax, (P, H)."""
        structure = self.query_key(self.extractor(x, edge, batch))  # (N, 2D)
        query, key = structure.view(x.shape[0], 2, self.num_heads, -1).unbind(1)  # (N, H, C)
        return scaled_products(query, key, batch.pairs)
