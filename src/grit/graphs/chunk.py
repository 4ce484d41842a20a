"""Graphs as NumPy arrays: the form in which readers and generators hand them over, before they are stored or batched."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from grit.errors import GritError

Array = NDArray[Any]


class ArrayGraph(NamedTuple):
    """One graph.

    Attributes:
        x: (n, F) node features.
        edge_index: (2, E), row 0 the source, nodes numbered from 0.
        edge_attr: (E, F) edge features, F = 0 where edges carry nothing.
        y: (R, T) targets: R = 1 for the graph, n for its nodes.
    """

    x: Array
    edge_index: Array
    edge_attr: Array
    y: Array


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
    """

    num_nodes: Array
    num_edges: Array
    x: Array
    edge_index: Array
    edge_attr: Array
    y: Array
    num_labels: Array | None = None
    label_index: Array | None = None

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
        )

    @classmethod
    def join(cls, chunks: Sequence["GraphChunk"]) -> "GraphChunk":
        """Lay chunks end to end."""
        parts: dict[str, Array] = {}
        for field in fields(cls):
            arrays = [getattr(chunk, field.name) for chunk in chunks]
            if any(array is not None for array in arrays):
                axis = 1 if field.name in ("edge_index", "label_index") else 0
                parts[field.name] = np.concatenate(arrays, axis=axis)
        return cls(**parts)

    def __len__(self) -> int:
        return int(self.num_nodes.size)
