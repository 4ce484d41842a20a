"""CIN, cellular isomorphism network (Bodnar et al. 2021): messages between nodes, edges and rings, cells of dimension 0, 1, 2.

    up(σ)       = Σ ReLU(W [x_τ ‖ x_δ])       over τ that share a cell δ of the next dimension with σ: two nodes of an edge, two
                                              edges of a ring
    boundary(σ) = Σ x_τ                       over τ that bound σ: the nodes of an edge, the edges of a ring
    x_σ <- MLP'([MLP(x_σ + up(σ)) ‖ MLP(x_σ + boundary(σ))])

Each dimension has weights of its own. Rings begin as the sum of their nodes. An edge is a pair of nodes that any listed edge
joins, in whichever direction; it begins as the mean of the features of these. Self-loops are no cells.

Shape letters: N nodes of the batch, M edges without direction, R rings, D channels.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from grit.batches.pair_batch import PairBatch
from grit.graphs.schema import GraphSchema
from grit.models.blocks import normed_mlp
from grit.nn.graph_features import JoinFeatures
from grit.nn.stem import FEATURE_ENCODERS
from grit.options import Dropout, Layers, Width


def cin_structures(options: Mapping[str, Any]) -> tuple[str, ...]:
    """What `Cin` reads of a batch besides nodes and edges."""
    return (f"rings-{options['max_ring']}",)


class Cin(nn.Module):
    """Messages between cells, then the sum over the cells of each dimension, a map for each, their sum, and a map.

    Args:
        schema: Features and targets of the data; graphs.
        num_layers: Rounds of messages.
        hidden_dim: D.
        max_ring: Nodes of the largest ring that is a cell.
        dropout: On the cells at the beginning, and before the last map.
    """

    def __init__(
        self,
        schema: GraphSchema,
        num_layers: Layers = 4,
        hidden_dim: Width = 128,
        max_ring: Width = 18,
        dropout: Dropout = 0.0,
    ) -> None:
        super().__init__()
        self.rings = f"rings-{max_ring}"
        self.node = FEATURE_ENCODERS[schema.node.kind](schema.node, hidden_dim)
        self.edge = FEATURE_ENCODERS[schema.edge.kind](schema.edge, hidden_dim)
        self.layers = nn.ModuleList(CinLayer(hidden_dim) for _ in range(num_layers))
        self.of_dimension = nn.ModuleList(nn.Linear(hidden_dim, 2 * hidden_dim) for _ in range(3))
        self.joined = JoinFeatures(schema, 2 * hidden_dim)
        self.out = nn.Linear(2 * hidden_dim, schema.num_outputs)
        self.dropout = nn.Dropout(dropout)

    def forward(self, batch: PairBatch) -> Tensor:
        """Predict: (B, T)."""
        cells = cells_of(batch, self.rings)
        node = self.node(batch.graphs.x)
        listed = self.edge(batch.graphs.edge_attr)[cells.is_joined]
        count = torch.bincount(cells.edge_of_listed, minlength=cells.num_edges).unsqueeze(1)
        edge = _sum(listed, cells.edge_of_listed, cells.num_edges) / count.to(node.dtype)
        ring = _sum(node[cells.ring_node[1]], cells.ring_node[0], cells.num_rings)
        xs = [self.dropout(x) for x in (node, edge, ring)]
        for layer in self.layers:
            xs = layer(xs, cells)
        graph = batch.graphs.graph_of_node
        graph_of = (graph, graph[cells.edge_node[0]], cells.graph_of_ring(graph))
        pooled = [
            torch.relu(linear(_sum(x, of, batch.num_graphs)))
            for x, of, linear in zip(xs, graph_of, self.of_dimension, strict=True)
        ]
        predicted: Tensor = self.out(self.dropout(self.joined(torch.stack(pooled).sum(0), batch)))
        return predicted


class CinLayer(nn.Module):
    """One round of messages between the cells of dimensions 0, 1 and 2.

    Args:
        hidden_dim: D.
    """

    def __init__(self, hidden_dim: int) -> None:
        super().__init__()
        # Rings bound nothing: there are no messages from above them.
        self.message = nn.ModuleList(nn.Linear(2 * hidden_dim, hidden_dim) for _ in range(2))
        self.up = nn.ModuleList(normed_mlp(hidden_dim, hidden_dim, hidden_dim, final=True) for _ in range(3))
        self.boundary = nn.ModuleList(normed_mlp(hidden_dim, hidden_dim, hidden_dim, final=True) for _ in range(3))
        self.combine = nn.ModuleList(normed_mlp(2 * hidden_dim, hidden_dim, final=True) for _ in range(3))

    def forward(self, xs: list[Tensor], cells: "Cells") -> list[Tensor]:
        """Update: x of nodes (N, D), edges (M, D) and rings (R, D)."""
        node, edge, ring = xs
        one, other = cells.edge_node
        via = torch.arange(len(one), device=one.device).repeat(2)
        up = [
            self._up(0, node, edge, torch.cat([one, other]), torch.cat([other, one]), via),
            self._up(1, edge, ring, *cells.ring_pairs),
            torch.zeros_like(ring),
        ]
        boundary = [
            torch.zeros_like(node),
            node[one] + node[other],
            _sum(edge[cells.ring_edge[1]], cells.ring_edge[0], cells.num_rings),
        ]
        return [
            self.combine[d](torch.cat([self.up[d](xs[d] + up[d]), self.boundary[d](xs[d] + boundary[d])], 1))
            for d in range(3)
        ]

    def _up(self, d: int, x: Tensor, above: Tensor, to: Tensor, by: Tensor, via: Tensor) -> Tensor:
        """Messages to cells ``to`` from cells ``by`` that share the cell ``via`` above them."""
        message = torch.relu(self.message[d](torch.cat([x.index_select(0, by), above.index_select(0, via)], 1)))
        return _sum(message, to, x.shape[0])


class Cells(NamedTuple):
    """The cells of a batch.

    Attributes:
        is_joined: Which listed edges belong to a cell, (E,) bool.
        edge_of_listed: The cell of each of these.
        edge_node: (2, M), the nodes of each edge.
        ring_node: (2, ...), ring and node.
        ring_edge: (2, ...), ring and edge.
        ring_pairs: Edge, edge, ring for every ordered pair of different edges of a ring.
        num_edges: M.
        num_rings: R.
    """

    is_joined: Tensor
    edge_of_listed: Tensor
    edge_node: Tensor
    ring_node: Tensor
    ring_edge: Tensor
    ring_pairs: tuple[Tensor, Tensor, Tensor]
    num_edges: int
    num_rings: int

    def graph_of_ring(self, graph_of_node: Tensor) -> Tensor:
        """(R,)."""
        found = self.ring_node.new_zeros(self.num_rings)
        found[self.ring_node[0]] = graph_of_node[self.ring_node[1]]
        return found


def cells_of(batch: PairBatch, rings: str) -> Cells:
    """The cells of a batch that carries the structure ``rings``."""
    source, target = batch.graphs.edge_index
    is_joined = source != target
    code = torch.minimum(source, target) * batch.num_nodes + torch.maximum(source, target)
    edges, edge_of_listed = torch.unique(code[is_joined], return_inverse=True)
    structure = batch.structures[rings]
    number = torch.full_like(source, -1)
    number[is_joined] = edge_of_listed
    ring, listed = structure.parts["edge"]
    # A ring meets an edge once, however often that is listed.
    met = torch.unique(ring * max(edges.numel(), 1) + number[listed])
    ring_edge = torch.stack([met // max(edges.numel(), 1), met % max(edges.numel(), 1)])
    return Cells(
        is_joined,
        edge_of_listed,
        torch.stack([edges // batch.num_nodes, edges % batch.num_nodes]),
        structure.parts["node"],
        ring_edge,
        _pairs_within(ring_edge, structure.counts["ring"]),
        edges.numel(),
        structure.counts["ring"],
    )


def _pairs_within(ring_edge: Tensor, num_rings: int) -> tuple[Tensor, Tensor, Tensor]:
    ring, edge = ring_edge  # ring by ring
    size = torch.bincount(ring, minlength=num_rings)
    first = (size.cumsum(0) - size)[ring]  # where the ring of each entry begins
    entry = torch.repeat_interleave(torch.arange(len(ring), device=ring.device), size[ring])
    begin = torch.repeat_interleave(size[ring].cumsum(0) - size[ring], size[ring])
    other = first[entry] + torch.arange(len(entry), device=ring.device) - begin
    differ = entry != other
    return edge[entry[differ]], edge[other[differ]], ring[entry[differ]]


def _sum(x: Tensor, index: Tensor, size: int) -> Tensor:
    return x.new_zeros(size, x.shape[1]).index_add(0, index, x)
