"""What all forms of TokenGT share: tokens, layers and head; the equations stand in `grit.models.transformers.tokengt`.

Shape letters: N nodes, E edges, B graphs, M tokens of the batch, M = N + E + 2B, L the most that one graph has, d width of an
identifier, D channels, T targets.
"""

from abc import ABC, abstractmethod

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from grit.batches.pair_batch import PairBatch
from grit.graphs.packed import PackedGraphs
from grit.graphs.schema import GraphSchema
from grit.models.blocks import Grid
from grit.models.transformers.tokengt_layer import TokenGtLayer
from grit.nn.graph_features import JoinFeatures
from grit.nn.stem import FEATURE_ENCODERS

_SPECIAL = 2  # graph token, null token


class TokenGt(nn.Module, ABC):
    """What both kinds of identifiers have in common; for the arguments see `grit.models.transformers.tokengt.TokenGtOrf`."""

    def __init__(
        self,
        schema: GraphSchema,
        *,
        identifier_dim: int,
        num_layers: int,
        hidden_dim: int,
        ffn_dim: int,
        num_heads: int,
        dropout: float,
        attention_dropout: float,
        activation_dropout: float,
        stochastic_depth: float,
    ) -> None:
        super().__init__()
        self.level = schema.level
        self.node = FEATURE_ENCODERS[schema.node.kind](schema.node, hidden_dim)
        self.edge = FEATURE_ENCODERS[schema.edge.kind](schema.edge, hidden_dim)
        self.special = nn.Embedding(_SPECIAL, hidden_dim)
        self.identifier = nn.Linear(2 * identifier_dim, hidden_dim, bias=False)
        self.kind = nn.Embedding(2, hidden_dim)  # edge, node
        self.stem = nn.Sequential(nn.LayerNorm(hidden_dim), nn.Dropout(dropout))
        self.layers = nn.ModuleList(
            TokenGtLayer(
                hidden_dim=hidden_dim,
                ffn_dim=ffn_dim,
                num_heads=num_heads,
                dropout=dropout,
                attention_dropout=attention_dropout,
                activation_dropout=activation_dropout,
                skip=stochastic_depth * (layer + 1) / num_layers,
            )
            for layer in range(num_layers)
        )
        self.joined = JoinFeatures(schema, hidden_dim)
        self.head = nn.Sequential(
            nn.Linear(hidden_dim, hidden_dim),
            nn.GELU(),
            nn.LayerNorm(hidden_dim),
            nn.Linear(hidden_dim, schema.num_outputs),
        )
        self.apply(_initialise)

    @abstractmethod
    def identify(self, batch: PairBatch) -> Tensor:
        """The identifier of each node: (N, d)."""

    def forward(self, batch: PairBatch) -> Tensor:
        """Predict: (B, T) for graphs, (N, T) for nodes."""
        graphs = batch.graphs
        x, graph_of_token = self.tokens(batch)  # (M, D), (M,)
        order = torch.argsort(graph_of_token, stable=True)
        grid = Grid(torch.bincount(graph_of_token, minlength=batch.num_graphs))
        x = grid.spread(self.stem(x[order]))  # (B, L, D)
        for layer in self.layers:
            x = layer(x, grid.occupied)
        place = torch.arange(graphs.num_nodes, device=x.device) - graphs.node_ptr[graphs.graph_of_node] + _SPECIAL
        chosen = x[graphs.graph_of_node, place] if self.level == "node" else x[:, 0]
        predicted: Tensor = self.head(self.joined(chosen, batch))
        return predicted

    def tokens(self, batch: PairBatch) -> tuple[Tensor, Tensor]:
        """(M, D), first those of the graphs, null tokens, nodes, edges; and the graph of each, (M,)."""
        graphs = batch.graphs
        nodes = torch.arange(graphs.num_nodes, device=graphs.x.device)
        first, second = torch.cat([nodes.expand(2, -1), graphs.edge_index], 1)  # (N + E,)
        identifier = self.identify(batch)  # (N, d)
        feature = torch.cat([self.node(graphs.x), self.edge(graphs.edge_attr)])  # (N + E, D)
        feature = feature + self.identifier(torch.cat([identifier[first], identifier[second]], 1))
        feature = feature + self.kind((first == second).long())
        special = self.special.weight.repeat_interleave(len(graphs), 0).to(feature.dtype)  # (2B, D)
        each = torch.arange(len(graphs), device=nodes.device)
        return torch.cat([special, feature]), torch.cat([each, each, graphs.graph_of_node[first]])


def orthonormal(drawn: Tensor, graphs: PackedGraphs) -> Tensor:
    """Rows of orthogonal matrices, uniformly distributed if ``drawn`` is normal: (N, d) -> (N, d).

    A graph of n nodes gets n rows of an orthogonal n x n matrix and zeros behind them. If n is more than d, these are d of its
    columns, with rows of length 1.
    """
    grid = Grid(graphs.nodes_per_graph)
    dense = grid.spread(drawn)  # (B, n, d)
    width = min(dense.shape[1], dense.shape[2])
    # Rows and columns beyond a graph's size are zero and stay zero in the columns before them: no graph sees another's size.
    used = torch.arange(width, device=drawn.device) < graphs.nodes_per_graph.unsqueeze(1)  # (B, width)
    q, r = torch.linalg.qr(dense[:, :, :width] * used.unsqueeze(1))  # (B, n, width)
    # Only with positive numbers on the diagonal of r is q uniform; the decomposition is free to choose their signs.
    sign = torch.where(r.diagonal(dim1=1, dim2=2) < 0, -1.0, 1.0).to(q.dtype) * used
    rows = grid.collect(q * sign.unsqueeze(1))  # (N, width)
    return F.normalize(F.pad(rows, (0, drawn.shape[1] - width)), dim=1)


def _initialise(module: nn.Module) -> None:
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)
