"""Several graphs laid end to end: the form that data has before pairs are chosen and encodings computed."""

from dataclasses import dataclass

import torch
from torch import Tensor

from grit.errors import GritError
from grit.graphs.tensor_tree import TensorTree, has_values


@dataclass(frozen=True, eq=False)
class PackedGraphs(TensorTree):
    """B graphs with N nodes and E directed edges in all, checked on construction.

    Attributes:
        x: Node features, (N, F). int64 for categories, floating for numbers; F = 0 where nodes carry nothing.
        edge_index: (2, E) int64, row 0 the source and row 1 the target, numbered over the whole batch.
        edge_attr: Edge features, (E, F). int64 or floating; F = 0 where edges carry nothing.
        node_ptr: (B + 1,) int64; graph g owns nodes ``node_ptr[g]`` to ``node_ptr[g + 1]``.
        edge_ptr: (B + 1,) int64, the same for edges.
        y: Targets or None: (B, T) for graphs, (N, T) for nodes, (Q, T) for the node pairs in ``label_index``.
        label_index: (2, Q) int64 or None: source and target of each pair that has an edge-level target.
        edge_weight: (E,) floating or None: weights of a step along each edge, 0 or more; None weighs all edges alike.
        graph_attr: (B, F) floating or None: numbers that each graph carries beside its nodes and edges, NaN where missing.
        graph_weight: (B,) floating or None: how much each graph counts in the loss, 0 or more; None counts all alike.
    """

    x: Tensor
    edge_index: Tensor
    edge_attr: Tensor
    node_ptr: Tensor
    edge_ptr: Tensor
    y: Tensor | None = None
    label_index: Tensor | None = None
    edge_weight: Tensor | None = None
    graph_attr: Tensor | None = None
    graph_weight: Tensor | None = None

    def __post_init__(self) -> None:
        # A record reaches another device only through .to(), that is, after it was checked here.
        if has_values(self.x):
            _check(self)

    @property
    def num_graphs(self) -> int:
        """B."""
        return self.node_ptr.numel() - 1

    @property
    def num_nodes(self) -> int:
        """N."""
        return self.x.shape[0]

    @property
    def num_edges(self) -> int:
        """E, each direction counted."""
        return self.edge_index.shape[1]

    @property
    def nodes_per_graph(self) -> Tensor:
        """(B,) int64."""
        return self.node_ptr.diff()

    @property
    def graph_of_node(self) -> Tensor:
        """(N,) int64: which graph a node belongs to, PyG's ``batch`` vector."""
        return torch.repeat_interleave(
            torch.arange(self.num_graphs, device=self.x.device), self.nodes_per_graph, output_size=self.num_nodes
        )

    def degree(self) -> Tensor:
        """(N,) int64: listed edges that leave each node, parallel edges and self-loops counted."""
        return torch.bincount(self.edge_index[0], minlength=self.num_nodes)

    def weighted_degree(self, dtype: torch.dtype) -> Tensor:
        """(N,) floating: the sum of the weights of these edges; their number where edges have no weights."""
        if self.edge_weight is None:
            return self.degree().to(dtype)
        total = torch.zeros(self.num_nodes, dtype=dtype, device=self.x.device)
        return total.index_add_(0, self.edge_index[0], self.edge_weight.to(dtype))

    def part(self, start: int, stop: int) -> "PackedGraphs":
        """Graphs number ``start`` to ``stop - 1``, without targets and their weights."""
        nodes = slice(int(self.node_ptr[start]), int(self.node_ptr[stop]))
        edges = slice(int(self.edge_ptr[start]), int(self.edge_ptr[stop]))
        return PackedGraphs(
            x=self.x[nodes],
            edge_index=self.edge_index[:, edges] - nodes.start,
            edge_attr=self.edge_attr[edges],
            node_ptr=self.node_ptr[start : stop + 1] - nodes.start,
            edge_ptr=self.edge_ptr[start : stop + 1] - edges.start,
            edge_weight=None if self.edge_weight is None else self.edge_weight[edges],
            graph_attr=None if self.graph_attr is None else self.graph_attr[start:stop],
        )

    def __len__(self) -> int:
        return self.num_graphs

    def __repr__(self) -> str:
        return f"PackedGraphs({self.num_graphs:,} graphs, {self.num_nodes:,} nodes, {self.num_edges:,} edges)"


def offsets(counts: Tensor) -> Tensor:
    """(B,) counts -> (B + 1,) positions at which each group begins, the total last."""
    out = counts.new_zeros(counts.numel() + 1)
    torch.cumsum(counts, 0, out=out[1:])
    return out


def _check(graphs: PackedGraphs) -> None:
    g = graphs
    for name in ("node_ptr", "edge_ptr", "edge_index"):
        tensor = getattr(g, name)
        if tensor.dtype != torch.int64:
            raise GritError(f"{name} must be int64, got {tensor.dtype}.")
    if g.edge_index.dim() != 2 or g.edge_index.shape[0] != 2:
        raise GritError(f"edge_index must have shape (2, E), got {tuple(g.edge_index.shape)}.")
    for name, rows in (("x", None), ("edge_attr", g.num_edges)):
        tensor = getattr(g, name)
        if tensor.dim() != 2:
            raise GritError(f"{name} must have shape (rows, features), got {tuple(tensor.shape)}.")
        if rows is not None and tensor.shape[0] != rows:
            raise GritError(f"{name} has {tensor.shape[0]} rows but there are {rows} edges.")
        if tensor.dtype != torch.int64 and not tensor.is_floating_point():
            raise GritError(f"{name} must be int64 (categories) or floating (numbers), got {tensor.dtype}.")
    _check_ptr("node_ptr", g.node_ptr, g.num_nodes)
    _check_ptr("edge_ptr", g.edge_ptr, g.num_edges)
    if g.node_ptr.numel() != g.edge_ptr.numel():
        raise GritError(f"node_ptr is for {len(g)} graphs, edge_ptr for {g.edge_ptr.numel() - 1}.")
    empty = (g.nodes_per_graph == 0).nonzero()
    if empty.numel():
        raise GritError(f"graph {int(empty[0])} has no nodes; a graph needs at least one. Leave it out of the data.")
    _check_edges("edge_index", g.edge_index, g, torch.repeat_interleave(torch.arange(len(g)), g.edge_ptr.diff()))
    _check_finite("node features (x)", g.x, g.node_ptr)
    _check_finite("edge features (edge_attr)", g.edge_attr, g.edge_ptr)
    _check_weights(g)
    _check_per_graph(g)
    if g.label_index is not None:
        if g.label_index.dim() != 2 or g.label_index.shape[0] != 2 or g.label_index.dtype != torch.int64:
            raise GritError(
                f"label_index must be int64 of shape (2, Q), got {g.label_index.dtype} {tuple(g.label_index.shape)}."
            )
        outside = (g.label_index < 0) | (g.label_index >= g.num_nodes)
        if bool(outside.any()):
            raise GritError(f"label_index refers to nodes outside 0..{g.num_nodes - 1}.")
        graph = g.graph_of_node
        if not torch.equal(graph[g.label_index[0]], graph[g.label_index[1]]):
            raise GritError("label_index joins nodes of two different graphs.")
    _check_targets(g)


def _check_weights(g: PackedGraphs) -> None:
    if g.edge_weight is None:
        return
    if g.edge_weight.shape != (g.num_edges,) or not g.edge_weight.is_floating_point():
        raise GritError(
            f"edge_weight must be floating of shape ({g.num_edges},), one weight for each edge, got "
            f"{g.edge_weight.dtype} {tuple(g.edge_weight.shape)}."
        )
    bad = ~torch.isfinite(g.edge_weight) | (g.edge_weight < 0)
    if bool(bad.any()):
        e = int(bad.nonzero()[0])
        graph = int(torch.searchsorted(g.edge_ptr, torch.tensor(e), right=True)) - 1
        raise GritError(
            f"graph {graph}: edge_weight of edge {e - int(g.edge_ptr[graph])} is {float(g.edge_weight[e])}; weights of a "
            "random walk are finite and not negative."
        )


def _check_per_graph(g: PackedGraphs) -> None:
    if g.graph_attr is not None:
        values = g.graph_attr
        if values.dim() != 2 or values.shape[0] != g.num_graphs or not values.is_floating_point():
            raise GritError(
                f"graph_attr must be floating of shape ({g.num_graphs}, F), one row of numbers for each graph, got "
                f"{values.dtype} {tuple(values.shape)}."
            )
        infinite = torch.isinf(values)
        if bool(infinite.any()):
            graph, column = infinite.nonzero()[0].tolist()
            raise GritError(
                f"graph {graph}: graph_attr is infinite in column {column}; NaN stands for a missing number."
            )
    if g.graph_weight is not None:
        weight = g.graph_weight
        if weight.shape != (g.num_graphs,) or not weight.is_floating_point():
            raise GritError(
                f"graph_weight must be floating of shape ({g.num_graphs},), one weight for each graph, got "
                f"{weight.dtype} {tuple(weight.shape)}."
            )
        bad = ~torch.isfinite(weight) | (weight < 0)
        if bool(bad.any()):
            graph = int(bad.nonzero()[0])
            raise GritError(
                f"graph {graph}: graph_weight is {float(weight[graph])}; weights are finite and not negative."
            )


def _check_targets(g: PackedGraphs) -> None:
    if g.y is None:
        return
    if g.y.dim() != 2:
        raise GritError(f"y must have shape (rows, targets), got {tuple(g.y.shape)}.")
    rows = g.y.shape[0]
    if g.label_index is not None:
        if rows != g.label_index.shape[1]:
            raise GritError(f"there are {rows} edge labels for {g.label_index.shape[1]} labelled pairs.")
    elif rows not in (g.num_graphs, g.num_nodes):
        raise GritError(
            f"y has {rows} rows for {g.num_graphs} graphs with {g.num_nodes} nodes: "
            "targets of a graph have shape (1, T), of its nodes (n, T)."
        )


def _check_ptr(name: str, ptr: Tensor, total: int) -> None:
    if ptr.dim() != 1 or ptr.numel() < 2:
        raise GritError(f"{name} must have one entry more than there are graphs (at least 2), got {tuple(ptr.shape)}.")
    if int(ptr[0]) != 0 or int(ptr[-1]) != total or bool((ptr.diff() < 0).any()):
        raise GritError(f"{name} must rise from 0 to {total}, got {ptr[:4].tolist()} ... {int(ptr[-1])}.")


def _check_edges(name: str, index: Tensor, graphs: PackedGraphs, graph_of_edge: Tensor) -> None:
    start, stop = graphs.node_ptr[graph_of_edge], graphs.node_ptr[graph_of_edge + 1]
    outside = ((index < start) | (index >= stop)).any(0)
    if bool(outside.any()):
        e = int(outside.nonzero()[0])
        g = int(graph_of_edge[e])
        source, target = (index[:, e] - start[e]).tolist()
        n = int(stop[e] - start[e])
        raise GritError(
            f"graph {g}: {name} has the edge {source} -> {target}, but the graph has {n} nodes: "
            f"node numbers go from 0 to {n - 1}. Check num_nodes and the numbering of the edges."
        )


def _check_finite(name: str, tensor: Tensor, ptr: Tensor) -> None:
    if not tensor.is_floating_point():
        return
    bad = ~torch.isfinite(tensor)
    if bool(bad.any()):
        row, column = bad.nonzero()[0].tolist()
        g = int(torch.searchsorted(ptr, torch.tensor(row), right=True)) - 1
        raise GritError(
            f"graph {g}: {name} hold {float(tensor[row, column])} in row {row - int(ptr[g])}, column {column}. "
            "Fill in or drop missing values before building the batch."
        )
