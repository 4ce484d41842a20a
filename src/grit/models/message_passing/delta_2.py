"""δ-2-GNN and δ-2-LGNN (Morris et al. 2020): GIN on the pairs of nodes, with local neighbours told apart from global ones.

    a^1_vw = Σ_{u: u -> v} x_uw        a^2_vw = Σ_{u: u -> w} x_vu          local: one node moves along an edge
    b^1_vw = Σ_u x_uw - a^1_vw         b^2_vw = Σ_u x_vu - a^2_vw           global: it goes anywhere else, or stays
    x_vw <- BatchNorm(MLP( [GIN(x_vw, a^1) ‖ GIN(x_vw, b^1) ‖ GIN(x_vw, a^2) ‖ GIN(x_vw, b^2)] ))
    GIN(x, a) = ReLU(MLP((1 + ε) x + a))

The δ-2-LGNN leaves out b. Both tell apart graphs that 1-WL cannot, such as C6 and two C3, and none that 2-FWL cannot, such as
two strongly regular graphs with the same parameters. A graph is the mean over its pairs of what all layers made of them, a node
the mean over the pairs that it is first in.

A pair begins as x_vw = W ReLU(encode(x_v) + encode'(x_w) + c_vw), with c_vw for a node with itself, no edge, or the edge w -> v
with its features; parallel edges add up their features and are one neighbour, a self-loop makes a node its own neighbour.

Shape letters: N nodes, P pairs, E edges, B graphs, S steps from pair to pair, D channels, L layers, T targets.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from grit.batches.pair_batch import PairBatch
from grit.graphs.packed import offsets
from grit.graphs.schema import GraphSchema
from grit.kernels.plain import row_sum
from grit.nn.graph_features import JoinFeatures
from grit.nn.norm import BatchNorm
from grit.nn.stem import FEATURE_ENCODERS
from grit.options import Layers, Width


class Steps(NamedTuple):
    """From which pairs each pair hears.

    Attributes:
        first: (2, S) int64, source and target: the first node moves along an edge.
        second: (2, S) int64, the second node does.
        column: (P,) int64: pairs with the same second node share a number, that of this node.
        row: (P,) int64: likewise the first node.
        num_nodes: N.
    """

    first: Tensor
    second: Tensor
    column: Tensor
    row: Tensor
    num_nodes: int


def steps(batch: PairBatch) -> Steps:
    """The steps of a batch with all pairs: for every edge u -> v and every node w of the graph one to (v, w), one to (w, v)."""
    graphs, row_ptr = batch.graphs, batch.pairs.row_ptr
    source, target = torch.unique(graphs.edge_index, dim=1)  # (E,)
    graph = graphs.graph_of_node[source]
    size, first_node = graphs.nodes_per_graph[graph], graphs.node_ptr[graph]  # (E,)
    edge = torch.repeat_interleave(torch.arange(source.numel(), device=source.device), size)  # (S,)
    other = torch.arange(edge.numel(), device=edge.device) - offsets(size)[edge]  # (S,) 0.. within each edge
    rows, moved = row_ptr[first_node[edge] + other], torch.stack([source, target])[:, edge]
    return Steps(
        first=row_ptr[moved] + other,
        second=rows + moved - first_node[edge],
        column=batch.pairs.key,
        row=batch.pairs.query,
        num_nodes=batch.num_nodes,
    )


class Delta2Layer(nn.Module):
    """One round: x (P, D) -> (P, D), see the top of the file.

    Args:
        hidden_dim: D.
        is_local: Whether global neighbours are left out.
    """

    def __init__(self, hidden_dim: int, *, is_local: bool) -> None:
        super().__init__()
        self.is_local = is_local
        kinds = 2 if is_local else 4
        self.epsilon = nn.Parameter(torch.zeros(kinds))
        self.gins = nn.ModuleList(_mlp(hidden_dim, hidden_dim) for _ in range(kinds))
        self.combine = _mlp(kinds * hidden_dim, hidden_dim)
        self.norm = BatchNorm(hidden_dim)

    def forward(self, x: Tensor, at: Steps) -> Tensor:
        """Hear and combine."""
        heard = []
        for (source, target), shared in ((at.first, at.column), (at.second, at.row)):
            local = torch.zeros_like(x).index_add(0, target, x.index_select(0, source))
            heard.append(local)
            if not self.is_local:
                total = x.new_zeros(at.num_nodes, x.shape[1]).index_add(0, shared, x)
                heard.append(total.index_select(0, shared) - local)
        said = [
            torch.relu(gin((1 + epsilon) * x + each))
            for gin, epsilon, each in zip(self.gins, self.epsilon, heard, strict=True)
        ]
        updated: Tensor = self.norm(self.combine(torch.cat(said, 1)))
        return updated


class Delta2(nn.Module):
    """Embed pairs, L rounds, mean of what all of them made, and a head of four linear maps.

    Args:
        schema: Features and targets of the data; graphs or nodes.
        num_layers: L.
        hidden_dim: D.
        is_local: Whether global neighbours are left out.
    """

    def __init__(self, schema: GraphSchema, *, num_layers: int, hidden_dim: int, is_local: bool) -> None:
        super().__init__()
        self.level = schema.level
        self.first, self.second = (FEATURE_ENCODERS[schema.node.kind](schema.node, hidden_dim) for _ in range(2))
        self.kind = nn.Embedding(3, hidden_dim)  # no edge, a node with itself, an edge
        has_features = schema.edge.kind != "none"
        self.edge = FEATURE_ENCODERS[schema.edge.kind](schema.edge, hidden_dim) if has_features else None
        self.pair = nn.Linear(hidden_dim, hidden_dim)
        self.layers = nn.ModuleList(Delta2Layer(hidden_dim, is_local=is_local) for _ in range(num_layers))
        self.joined = JoinFeatures(schema, num_layers * hidden_dim)
        self.head = nn.Sequential(
            nn.Linear(num_layers * hidden_dim, hidden_dim),
            *(module for _ in range(2) for module in (nn.ReLU(), nn.Linear(hidden_dim, hidden_dim))),
            nn.ReLU(),
            nn.Linear(hidden_dim, schema.num_outputs),
        )

    def forward(self, batch: PairBatch) -> Tensor:
        """Predict: (B, T) for graphs, (N, T) for nodes."""
        x, at = self.embed_pairs(batch), steps(batch)
        made = []
        for layer in self.layers:
            x = layer(x, at)
            made.append(x)
        rows = row_sum(torch.cat(made, 1), batch.pairs)  # (N, L D)
        size = batch.graphs.nodes_per_graph.unsqueeze(1).to(rows.dtype)  # (B, 1)
        of_node = batch.graphs.graph_of_node
        if self.level == "graph":
            pooled = rows.new_zeros(batch.num_graphs, rows.shape[1]).index_add(0, of_node, rows) / size**2
        else:
            pooled = rows / size[of_node]
        predicted: Tensor = self.head(self.joined(pooled, batch))
        return predicted

    def embed_pairs(self, batch: PairBatch) -> Tensor:
        """What is known of each pair at the beginning: (P, D)."""
        pairs = batch.pairs
        kind = (pairs.query == pairs.key).long().index_fill(0, pairs.edge_pair, 2)  # (P,)
        first, second = (
            encoder(batch.graphs.x).index_select(0, index)
            for encoder, index in ((self.first, pairs.query), (self.second, pairs.key))
        )
        x = first + second + self.kind(kind)
        if self.edge is not None:
            x = x.index_add(0, pairs.edge_pair, self.edge(batch.graphs.edge_attr).to(x.dtype))
        embedded: Tensor = self.pair(torch.relu(x))
        return embedded


class Delta2Gnn(Delta2):
    """δ-2-GNN: local and global neighbours.

    Args:
        schema: Features and targets of the data; graphs or nodes.
        num_layers: L.
        hidden_dim: D.
    """

    def __init__(self, schema: GraphSchema, num_layers: Layers = 4, hidden_dim: Width = 256) -> None:
        super().__init__(schema, num_layers=num_layers, hidden_dim=hidden_dim, is_local=False)


class Delta2Lgnn(Delta2):
    """δ-2-LGNN: local neighbours alone.

    Args:
        schema: Features and targets of the data; graphs or nodes.
        num_layers: L.
        hidden_dim: D.
    """

    def __init__(self, schema: GraphSchema, num_layers: Layers = 4, hidden_dim: Width = 256) -> None:
        super().__init__(schema, num_layers=num_layers, hidden_dim=hidden_dim, is_local=True)


def _mlp(width: int, hidden_dim: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, hidden_dim), nn.ReLU(), nn.Linear(hidden_dim, hidden_dim))
