"""Statistics of a stored data set, for comparison with what is published."""

from collections import Counter
from typing import NamedTuple

import numpy as np

from grit.graphs.store import GraphStore


class SplitStatistics(NamedTuple):
    """One split: graphs, mean nodes and edges per graph (both directions counted), and a line about the targets.

    ``counted`` is the number of its nodes where nodes of one graph are in different splits, else None.
    """

    name: str
    graphs: int
    nodes: float
    edges: float
    targets: str
    counted: int | None = None


class StoreStatistics(NamedTuple):
    """A whole data set.

    Attributes:
        graphs: Number of graphs.
        nodes: Mean nodes per graph.
        edges: Mean edges per graph, both directions counted.
        smallest: Nodes of the smallest graph.
        largest: Nodes of the largest graph.
        categories: Distinct values in each column of categorical node features.
        bytes: Of the arrays.
        splits: One entry each.
    """

    graphs: int
    nodes: float
    edges: float
    smallest: int
    largest: int
    categories: tuple[int, ...]
    bytes: int
    splits: tuple[SplitStatistics, ...]


def statistics(store: GraphStore) -> StoreStatistics:
    """Read a store through once and sum it up."""
    nodes = store.nodes_per_graph()
    edges = np.diff(store.array("edge_ptr").astype(np.int64))
    x = store.array("x")
    categories = (
        tuple(np.unique(x[:, column]).size for column in range(x.shape[1])) if store.schema.node.is_integer else ()
    )
    splits = tuple(
        SplitStatistics(
            name=name,
            graphs=int(members.size),
            nodes=float(nodes[members].mean()) if members.size else 0.0,
            edges=float(edges[members].mean()) if members.size else 0.0,
            targets=_targets(store, name),
            counted=store.split_size(name) if store.divides_nodes else None,
        )
        for name, members in store.splits.items()
    )
    return StoreStatistics(
        graphs=len(store),
        nodes=float(nodes.mean()),
        edges=float(edges.mean()),
        smallest=int(nodes.min()),
        largest=int(nodes.max()),
        categories=categories,
        bytes=store.num_bytes,
        splits=splits,
    )


def _targets(store: GraphStore, split: str) -> str:
    y = store.targets(store.split(split), split).astype(np.float64)
    if y.size == 0:
        return ""
    missing = np.isnan(y)
    known = y[~missing]
    blanks = f", {missing.mean():.1%} missing" if missing.any() else ""
    if store.task.kind == "regression":
        shown = f"mean {known.mean():.4f}, std {known.std():.4f}, {known.min():.2f} to {known.max():.2f}"
        return (f"{y.shape[1]} targets: " if y.shape[1] > 1 else "") + shown + blanks
    if store.task.kind == "mixed":
        kinds = Counter(part.kind for part in store.task.parts)
        return f"{y.shape[1]} targets ({', '.join(f'{count} {kind}' for kind, count in kinds.items())}){blanks}"
    if store.task.kind == "multilabel":
        return f"{y.shape[1]} labels, {known.mean():.1%} positive{blanks}"
    counts = np.bincount(known.astype(np.int64), minlength=len(store.task.classes))
    shares = ", ".join(
        f"{name} {count / counts.sum():.1%}" for name, count in zip(store.task.classes, counts, strict=True)
    )
    return shares + blanks
