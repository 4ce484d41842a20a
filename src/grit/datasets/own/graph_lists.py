"""Your own graphs: of PyG, or of NetworkX."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch

from grit.datasets.own.node_masks import describe_division, node_splits
from grit.datasets.own.task_inference import ColumnFacts, TaskKind, infer_targets
from grit.datasets.pipeline.featurise_rows import Piece, batched
from grit.datasets.pipeline.splits import random_split
from grit.datasets.pipeline.write_store import Collected, Description, collect
from grit.errors import GritError
from grit.graphs.chunk import Array, GraphChunk, graphs_of_splits
from grit.graphs.packed import PackedGraphs
from grit.graphs.schema import Features, GraphSchema, TaskSpec
from grit.graphs.store import GraphStore


def from_pyg(
    graphs: Iterable[Any],
    *,
    task: TaskKind | None = None,
    splits: Mapping[str, Sequence[int] | Array] | None = None,
    seed: int = 0,
    name: str = "graphs",
    out: str | Path | None = None,
    overwrite: bool = False,
    mask_column: int | None = None,
    say: Callable[[str], None] | None = None,
) -> GraphStore:
    """PyG graphs: a list of ``Data``, a single one, or a PyG data set.

    Integer features become categories, floating ones numbers. Targets are those of `grit.graphs.convert.pack`: ``y`` of graphs
    or nodes, or ``edge_label`` of ``edge_label_index``. Numbers of a whole graph are ``graph_attr``, (1, F) with NaN where
    missing; they go with targets of graphs, and are joined to the pooled graph before the head.

    If ``y`` is of nodes and the graphs carry ``train_mask``, ``val_mask`` and ``test_mask``, these divide the nodes: every split
    reads the whole graphs, and only its own nodes count in loss and metrics (`GraphStore.divides_nodes`). Targets of nodes in no
    mask are not kept.

    Args:
        graphs: The graphs.
        task: ``regression``, ``binary``, ``multiclass`` or ``multilabel``; inferred from the targets if not given.
        splits: Numbers of the graphs in train, val and test, whatever masks they carry. If not given, the masks, or a random
            division of the graphs if there are none.
        seed: Of that division.
        name: Of the data set.
        out: Folder of the new store; in memory if not given.
        overwrite: Whether a store at ``out`` is replaced.
        mask_column: Which column of masks of shape (n, C) to take, which hold several divisions.
        say: Told how nodes are divided, and what to do next, a sentence at a time.
    """
    from torch_geometric.data import Data

    from grit.graphs.convert import pack

    chunks: list[GraphChunk] = []
    level = None
    read = 0
    if isinstance(graphs, Data):
        graphs = [graphs]
    for batch in batched(graphs, 512):
        packed = pack(batch)
        if packed.edge_weight is not None:
            raise GritError(
                "the graphs carry edge_weight, which a store does not keep. Delete it (del data.edge_weight), or put it into "
                "edge_attr as a feature; for weighted random walks make batches with grit.PairBatch.from_data_list."
            )
        this = _level(packed)
        if level not in (None, this):
            raise GritError(f"some graphs have {level}-level targets and others {this}-level ones.")
        level = this
        divided = None if splits is not None or level != "node" else node_splits(batch, mask_column, first=read)
        if chunks and (chunks[0].node_split is None) != (divided is None):
            raise GritError(
                "some graphs carry train_mask, val_mask and test_mask and others do not; all must, or none."
            )
        chunks.append(replace(_chunk(packed, batch), node_split=divided))
        read += len(batch)
    if level != "graph" and chunks and chunks[0].graph_attr is not None:
        raise GritError(
            f"graph_attr goes with targets of whole graphs; these are {level}-level ones. Delete it (del data.graph_attr), or "
            "put its numbers into x."
        )
    if level is None:
        raise GritError("the list of graphs is empty; a data set needs at least one graph.")
    whole = GraphChunk.join(chunks)
    node_split = whole.node_split
    if mask_column is not None and node_split is None:
        raise GritError(
            "mask_column is for graphs whose train_mask, val_mask and test_mask divide the targets of their nodes."
        )
    if node_split is not None and not node_split.any():
        raise GritError("no node is in train_mask, val_mask or test_mask: all of them are False.")
    known = whole.y if node_split is None else whole.y[node_split > 0]
    _check_range(known)
    spec = _task_of(known, task)
    y = _class_numbers(whole.y, spec)
    whole = replace(
        whole, y=y if node_split is None else np.where(node_split[:, None] > 0, y, np.nan).astype(np.float32)
    )
    schema = GraphSchema(
        node=_features("x", whole.x),
        edge=_features("edge_attr", whole.edge_attr),
        level=level,
        num_outputs=spec.num_outputs,
        graph_features=0 if whole.graph_attr is None else whole.graph_attr.shape[1],
    )
    pieces = [Piece(whole, np.arange(len(whole)), [], [])]
    description = Description(name=name, graphs=schema, task=spec, source="PyG graphs")

    def choose(found: Collected) -> dict[str, Array]:
        if node_split is not None:
            return graphs_of_splits(node_split, whole.num_nodes)
        if splits is None and found.count < 3 and level == "node":
            raise GritError(
                f"{found.count} graph(s) cannot be divided into train, val and test. Divide the nodes: set data.train_mask, "
                "val_mask and test_mask (torch_geometric.transforms.RandomNodeSplit makes them); or pass splits."
            )
        if splits is None:
            return random_split(found.count, seed)
        return {split: np.asarray(members, dtype=np.int64) for split, members in splits.items()}

    store = collect(pieces, description, choose, out=None if out is None else Path(out), overwrite=overwrite)
    if say is not None and node_split is not None:
        say(describe_division(node_split, len(store), spec))
        if out is not None:
            say(f"Next: grit train own-nodes dataset={out}")
    return store


def from_networkx(
    graphs: Sequence[Any],
    y: Sequence[Any] | Array,
    *,
    node_attributes: Sequence[str] = (),
    edge_attributes: Sequence[str] = (),
    task: TaskKind | None = None,
    splits: Mapping[str, Sequence[int] | Array] | None = None,
    seed: int = 0,
    name: str = "graphs",
    out: str | Path | None = None,
    overwrite: bool = False,
) -> GraphStore:
    """NetworkX graphs, directed or not, with targets beside them.

    Args:
        graphs: The graphs; an edge of an undirected one counts in both directions.
        y: A target, or a list of targets, for each graph; or, for node-level tasks, an array of shape (n, 1) for each, in the
            order of ``graph.nodes``.
        node_attributes: Names of node attributes that become features, numbers or whole numbers.
        edge_attributes: The same for edges.
        task: See `from_pyg`, as are the remaining arguments.
        splits: See `from_pyg`.
        seed: See `from_pyg`.
        name: See `from_pyg`.
        out: See `from_pyg`.
        overwrite: See `from_pyg`.
    """
    from torch_geometric.data import Data

    if len(graphs) != len(y):
        raise GritError(f"there are {len(graphs)} graphs and {len(y)} targets.")
    data_list = []
    for number, (graph, target) in enumerate(zip(graphs, y, strict=True)):
        place = {node: position for position, node in enumerate(graph.nodes)}
        edges = [(place[u], place[v], values) for u, v, values in graph.edges(data=True)]
        if not graph.is_directed():
            edges += [(v, u, values) for u, v, values in edges if u != v]
        index = torch.tensor([edge[:2] for edge in edges], dtype=torch.int64).reshape(-1, 2).t().contiguous()
        data = Data(edge_index=index, num_nodes=len(place))
        if node_attributes:
            data.x = _attributes(number, "node", [values for _, values in graph.nodes(data=True)], node_attributes)
        if edge_attributes:
            data.edge_attr = _attributes(number, "edge", [edge[2] for edge in edges], edge_attributes)
        target = np.asarray(target)
        data.y = torch.as_tensor(target if target.ndim == 2 else target.reshape(1, -1))
        data_list.append(data)
    return from_pyg(data_list, task=task, splits=splits, seed=seed, name=name, out=out, overwrite=overwrite)


def _level(packed: PackedGraphs) -> Any:
    if packed.y is None:
        raise GritError("the graphs carry no targets: set data.y.")
    if packed.label_index is not None:
        return "edge"
    return "graph" if packed.y.shape[0] == packed.num_graphs else "node"  # packing refuses any other number of rows


def _chunk(packed: PackedGraphs, graphs: Sequence[Any]) -> GraphChunk:
    """The graphs that were packed, which has checked them, with nodes numbered as they number them."""
    assert packed.y is not None
    labels: dict[str, Array] = {}
    if packed.label_index is not None:
        pairs = [data.edge_label_index for data in graphs]
        labels = {"num_labels": np.array([each.shape[1] for each in pairs]), "label_index": _side_by_side(pairs)}
    return GraphChunk(
        num_nodes=packed.nodes_per_graph.numpy(),
        num_edges=packed.edge_ptr.diff().numpy(),
        x=packed.x.numpy(),
        edge_index=_side_by_side([data.edge_index for data in graphs]),
        edge_attr=packed.edge_attr.numpy(),
        y=packed.y.numpy(),
        graph_attr=None if packed.graph_attr is None else packed.graph_attr.numpy(),
        **labels,
    )


def _side_by_side(indices: Sequence[torch.Tensor]) -> Array:
    whole: Array = torch.cat([index.long().cpu() for index in indices], 1).numpy()
    return whole


def _features(name: str, values: Array) -> Features:
    if values.shape[1] == 0:
        return Features(kind="none")
    if values.dtype.kind == "f":
        return Features(kind="numeric", sizes=(values.shape[1],))
    if values.size == 0:
        return Features(kind="columns", sizes=(1,) * values.shape[1])
    if values.min() < 0:
        raise GritError(
            f"{name} holds the negative category {values.min()}; make categories start at 0, or pass floats."
        )
    sizes = tuple(int(size) + 1 for size in values.max(0))
    return Features(kind="category" if len(sizes) == 1 else "columns", sizes=sizes)


def _task_of(y: Array, kind: TaskKind | None) -> TaskSpec:
    names = ("y",) if y.shape[1] == 1 else tuple(f"y{column}" for column in range(y.shape[1]))
    facts = [ColumnFacts(name) for name in names]
    for fact, column in zip(facts, y.T, strict=True):
        values, counts = np.unique(column[~np.isnan(column)] if y.dtype.kind == "f" else column, return_counts=True)
        for value in values.tolist():
            fact.see(value)
        # The distinct values decide; only how many there are in all matters beyond them.
        fact.present = fact.numbers = int(counts.sum())
        fact.whole = fact.present if y.dtype.kind in "iu" else 0
    if kind is None and y.dtype.kind in "iu" and y.shape[1] == 1 and len(facts[0].distinct) > 1:
        if (
            y.min() >= 0
        ):  # numbers of classes, of which some may have no graph; labels such as -1 and 1 count by themselves
            facts[0].distinct = {str(value) for value in range(min(int(y.max()), 1000) + 1)}
        kind = "binary" if len(facts[0].distinct) == 2 else "multiclass"
    return infer_targets(facts, kind).task


def _check_range(y: Array) -> None:
    """Raise if a target is infinite, or would be in the 32 bits of a store."""
    wrong = y[(np.abs(y) > np.finfo(np.float32).max).any(1)]
    if wrong.size:
        raise GritError(
            f"the targets {wrong[0].tolist()} are infinite, or beyond 32-bit numbers. Rescale them; NaN stands for missing ones."
        )


def _class_numbers(y: Array, task: TaskSpec) -> Array:
    """Targets as the numbers of their classes: labels 1 and 2 are the classes 0 and 1."""
    if not task.classes:
        return y
    numbers = y.astype(np.float32)
    for number, name in enumerate(task.classes):
        numbers[y == float(name)] = number
    return numbers


def _attributes(graph: int, what: str, items: list[dict[str, Any]], names: Sequence[str]) -> torch.Tensor:
    try:
        rows = [[item[name] for name in names] for item in items]
    except KeyError as error:
        raise GritError(f"graph {graph}: a {what} has no attribute {error}.") from None
    if not all(isinstance(value, int | float | np.number) for value in chain.from_iterable(rows)):
        raise GritError(f"graph {graph}: the {what} attributes {', '.join(names)} must be numbers.")
    whole = all(isinstance(value, int | np.integer) for value in chain.from_iterable(rows))
    values = np.array(rows, dtype=np.int64 if whole else np.float32).reshape(len(items), len(names))
    return torch.from_numpy(values)
