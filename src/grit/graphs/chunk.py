"""Graphs as NumPy arrays: the form in which readers and generators hand them over, before they are stored or batched; checks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from grit.errors import GritError
from grit.graphs.schema import GraphSchema

Array = NDArray[Any]

NODE_SPLITS = ("train", "val", "test")
"""The splits that nodes of one graph can be divided into: ``node_split`` is 1, 2, 3 for them, and 0 for a node in none."""


class ArrayGraph(NamedTuple):
    """One graph.

    Attributes:
        x: (n, F) node features.
        edge_index: (2, E), row 0 the source, nodes numbered from 0.
        edge_attr: (E, F) edge features, F = 0 where edges carry nothing.
        y: (R, T) targets: R = 1 for the graph, n for its nodes.
        graph_attr: (F,) numbers that the graph carries beside its nodes and edges; None for none.
        weight: How much it counts in the loss; None where all count alike.
    """

    x: Array
    edge_index: Array
    edge_attr: Array
    y: Array
    graph_attr: Array | None = None
    weight: float | None = None


@dataclass(frozen=True)
class GraphChunk:
    """B graphs end to end, N nodes and E edges in all.

    Attributes:
        num_nodes: (B,) nodes of each graph.
        num_edges: (B,) edges of each graph.
        x: (N, F).
        edge_index: (2, E), numbered within each graph.
        edge_attr: (E, F).
        y: (R, T): R = B for graph-level targets, N for node-level ones, Q for labelled pairs.
        num_labels: (B,) labelled pairs of each graph, for edge-level targets.
        label_index: (2, Q) source and target of each, numbered within each graph.
        node_split: (N,) the split of each node, see `NODE_SPLITS`, where nodes of one graph are in different splits.
        graph_attr: (B, F) numbers that each graph carries beside its nodes and edges, NaN where missing.
        graph_weight: (B,) how much each graph counts in the loss, where they do not count alike.
    """

    num_nodes: Array
    num_edges: Array
    x: Array
    edge_index: Array
    edge_attr: Array
    y: Array
    num_labels: Array | None = None
    label_index: Array | None = None
    node_split: Array | None = None
    graph_attr: Array | None = None
    graph_weight: Array | None = None

    @classmethod
    def of(cls, graphs: Sequence[ArrayGraph]) -> "GraphChunk":
        """Lay single graphs end to end."""
        if not graphs:
            raise GritError("a chunk needs at least one graph.")
        return cls(
            num_nodes=np.array([graph.x.shape[0] for graph in graphs], dtype=np.int64),
            num_edges=np.array([graph.edge_index.shape[1] for graph in graphs], dtype=np.int64),
            x=np.concatenate([graph.x for graph in graphs]),
            edge_index=np.concatenate([graph.edge_index for graph in graphs], axis=1),
            edge_attr=np.concatenate([graph.edge_attr for graph in graphs]),
            y=np.concatenate([graph.y for graph in graphs]),
            graph_attr=_stacked("graph_attr", [graph.graph_attr for graph in graphs]),
            graph_weight=_stacked("a weight", [graph.weight for graph in graphs]),
        )

    @classmethod
    def join(cls, chunks: Sequence["GraphChunk"]) -> "GraphChunk":
        """Lay chunks end to end."""
        parts: dict[str, Array] = {}
        for field in fields(cls):
            arrays = [getattr(chunk, field.name) for chunk in chunks]
            if any(array is not None for array in arrays):
                if any(array is None for array in arrays):
                    raise GritError(f"some graphs carry {field.name} and others do not; all must, or none.")
                axis = 1 if field.name in ("edge_index", "label_index") else 0
                parts[field.name] = np.concatenate(arrays, axis=axis)
        return cls(**parts)

    def __len__(self) -> int:
        return int(self.num_nodes.size)


def _stacked(name: str, values: Sequence[Array | float | None]) -> Array | None:
    """One row for each graph; None if none has such."""
    present = [np.asarray(value) for value in values if value is not None]
    if not present:
        return None
    if len(present) < len(values):
        raise GritError(f"some graphs carry {name} and others do not; all must, or none.")
    return np.stack(present)


def check_chunk(chunk: GraphChunk, graphs: GraphSchema, first: int) -> None:
    """Raise unless the graphs are sound and as the schema says; ``first`` is the number of the first, for messages."""
    nodes, edges = int(chunk.num_nodes.sum()), int(chunk.num_edges.sum())
    level_rows = {
        "graph": len(chunk),
        "node": nodes,
        "edge": int(chunk.num_labels.sum()) if chunk.num_labels is not None else -1,
    }
    for name, got, wanted in (
        ("x", chunk.x.shape[0], nodes),
        ("edge_index", chunk.edge_index.shape[1], edges),
        ("edge_attr", chunk.edge_attr.shape[0], edges),
        ("y", chunk.y.shape[0], level_rows[graphs.level]),
    ):
        if got != wanted:
            raise GritError(f"{name} has {got} rows, expected {wanted} ({graphs.level}-level targets).")
    for name, features, values in (("x", graphs.node, chunk.x), ("edge_attr", graphs.edge, chunk.edge_attr)):
        if values.shape[1] != features.width:
            raise GritError(f"{name} has {values.shape[1]} columns, the schema says {features}.")
        if features.is_integer and values.size:
            largest = values.max(0)
            if values.min() < 0 or (largest >= np.array(features.sizes)).any():
                raise GritError(f"{name} holds categories up to {largest.tolist()}, the schema says {features}.")
    if (chunk.num_nodes < 1).any():
        raise GritError(
            f"graph {first + int((chunk.num_nodes < 1).argmax())} has no nodes; a graph needs at least one."
        )
    _check_pairs("edge", chunk.edge_index, chunk.num_edges, chunk.num_nodes, first)
    if chunk.label_index is not None and chunk.num_labels is not None:
        _check_pairs("labelled pair", chunk.label_index, chunk.num_labels, chunk.num_nodes, first)
    if chunk.node_split is not None:
        _check_node_split(chunk.node_split, nodes, graphs)
    _check_graph_attr(chunk.graph_attr, len(chunk), graphs, first)
    if chunk.graph_weight is not None:
        _check_graph_weight(chunk.graph_weight, len(chunk), graphs, first)


def _check_pairs(what: str, index: Array, count: Array, num_nodes: Array, first: int) -> None:
    """Raise unless all pairs join nodes of their graph; ``count`` says how many pairs each graph has."""
    outside = (index < 0).any(0) | (index >= np.repeat(num_nodes, count)).any(0)
    if outside.any():
        pair = int(outside.argmax())
        graph = int(np.searchsorted(np.cumsum(count), pair, side="right"))
        source, target = index[:, pair].tolist()
        raise GritError(f"graph {first + graph}: the {what} {source} -> {target} leaves its {num_nodes[graph]} nodes.")


def _check_node_split(node_split: Array, nodes: int, graphs: GraphSchema) -> None:
    if graphs.level != "node":
        raise GritError(f"only targets of nodes can be divided node by node; these are {graphs.level}-level ones.")
    if node_split.shape != (nodes,) or node_split.dtype.kind not in "iu":
        raise GritError(
            f"node_split must hold one whole number for each of {nodes} nodes, got {node_split.dtype} {node_split.shape}."
        )
    if node_split.size and not 0 <= int(node_split.min()) <= int(node_split.max()) <= len(NODE_SPLITS):
        raise GritError(f"node_split holds numbers outside 0..{len(NODE_SPLITS)}.")


def _check_graph_attr(values: Array | None, count: int, graphs: GraphSchema, first: int) -> None:
    width = graphs.graph_features
    if values is None:
        if width:
            raise GritError(f"the graphs carry no numbers of their own (graph_attr), the schema says {width}.")
        return
    if values.shape != (count, width) or not width or values.dtype.kind not in "iuf":
        raise GritError(
            f"graph_attr must hold {width} numbers for each of {count} graphs, got {values.dtype} {values.shape}."
        )
    # Stored as float32, in which larger numbers would be infinite.
    too_large = (np.abs(values.astype(np.float64)) > np.finfo(np.float32).max).any(1)
    if too_large.any():
        raise GritError(
            f"graph {first + int(too_large.argmax())}: graph_attr is infinite or beyond 3e38; NaN stands for a missing number."
        )


def _check_graph_weight(weight: Array, count: int, graphs: GraphSchema, first: int) -> None:
    if graphs.level != "graph":
        raise GritError(f"weights go with targets of whole graphs; these are {graphs.level}-level ones.")
    if weight.shape != (count,) or weight.dtype.kind != "f":
        raise GritError(
            f"graph_weight must hold a number for each of {count} graphs, got {weight.dtype} {weight.shape}."
        )
    wrong = ~(np.isfinite(weight) & (weight >= 0))
    if wrong.any():
        place = int(wrong.argmax())
        raise GritError(f"graph {first + place}: its weight is {weight[place]}; weights are finite and not negative.")


def graphs_of_splits(node_split: Array, num_nodes: Array) -> dict[str, Array]:
    """Numbers of the graphs with at least one node in each split: node_split (N,), num_nodes (B,)."""
    graph = np.repeat(np.arange(num_nodes.size), num_nodes)
    return {name: np.unique(graph[node_split == number]) for number, name in enumerate(NODE_SPLITS, start=1)}


def check_divided(splits: Mapping[str, Array], node_split: Array, num_nodes: Array) -> None:
    """Raise unless splits name the graphs with nodes in them: node_split (N,), num_nodes (B,)."""
    wanted = graphs_of_splits(node_split, num_nodes)
    if splits.keys() != wanted.keys() or any(not np.array_equal(splits[name], wanted[name]) for name in wanted):
        raise GritError("the splits do not name the graphs whose nodes are in them, as node_split says.")


def check_split(name: str, members: Array, num_graphs: int) -> None:
    """Raise unless a split names existing graphs, each once."""
    if not name.isidentifier():
        raise GritError(f"the split name {name!r} is not a simple word.")
    if members.size and (members.min() < 0 or members.max() >= num_graphs):
        raise GritError(f"split {name!r} names graphs outside 0..{num_graphs - 1}.")
    if np.unique(members).size != members.size:
        raise GritError(f"split {name!r} names a graph twice.")


def check_splits(splits: Mapping[str, Array], num_graphs: int) -> None:
    """Raise unless all splits are sound by themselves and no graph is in two of them."""
    names = list(splits)
    owner = np.full(num_graphs, -1)
    for number, (name, members) in enumerate(splits.items()):
        check_split(name, members, num_graphs)
        taken = owner[members] >= 0
        if taken.any():
            both = int(members[taken][0])
            raise GritError(f"graph {both} is in the splits {names[owner[both]]!r} and {name!r}.")
        owner[members] = number
