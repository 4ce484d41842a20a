"""Your own graphs: of PyG, or of NetworkX."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch

from grit.datasets.own.molecule_tables import target_text
from grit.datasets.own.task_inference import ColumnFacts, TaskKind, infer_targets
from grit.datasets.pipeline.featurise_rows import Piece, batched
from grit.datasets.pipeline.splits import random_split
from grit.datasets.pipeline.write_store import Collected, Description, collect
from grit.errors import GritError
from grit.graphs.chunk import Array, GraphChunk
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
) -> GraphStore:
    """PyG graphs: a list of ``Data``, or a PyG data set.

    Integer features become categories, floating ones numbers. Targets are those of `grit.graphs.convert.pack`: ``y`` of graphs
    or nodes, or ``edge_label`` of ``edge_label_index``.

    Args:
        graphs: The graphs.
        task: ``regression``, ``binary``, ``multiclass`` or ``multilabel``; inferred from the targets if not given.
        splits: Numbers of the graphs in train, val and test; a random division if not given.
        seed: Of that division.
        name: Of the data set.
        out: Folder of the new store; in memory if not given.
        overwrite: Whether a store at ``out`` is replaced.
    """
    from grit.graphs.convert import pack

    chunks: list[GraphChunk] = []
    level = None
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
        chunks.append(_chunk(packed))
    if level is None:
        raise GritError("the list of graphs is empty; a data set needs at least one graph.")
    whole = GraphChunk.join(chunks)
    _check_range(whole.y)
    spec = _task_of(whole.y, task)
    whole = replace(whole, y=_class_numbers(whole.y, spec))
    schema = GraphSchema(
        node=_features("x", whole.x),
        edge=_features("edge_attr", whole.edge_attr),
        level=level,
        num_outputs=spec.num_outputs,
    )
    pieces = [Piece(whole, np.arange(len(whole)), [], [])]
    description = Description(name=name, graphs=schema, task=spec, source="PyG graphs")

    def choose(found: Collected) -> dict[str, Array]:
        if splits is None:
            return random_split(found.count, seed)
        return {split: np.asarray(members, dtype=np.int64) for split, members in splits.items()}

    return collect(pieces, description, choose, out=None if out is None else Path(out), overwrite=overwrite)


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


def _chunk(packed: PackedGraphs) -> GraphChunk:
    first = packed.node_ptr[:-1]
    assert packed.y is not None
    labels: dict[str, Array] = {}
    if packed.label_index is not None:
        graph = packed.graph_of_node[packed.label_index[0]]
        labels["num_labels"] = torch.bincount(graph, minlength=len(packed)).numpy()
        labels["label_index"] = (packed.label_index - first[graph]).numpy()
    edges = packed.edge_ptr.diff()
    return GraphChunk(
        num_nodes=packed.nodes_per_graph.numpy(),
        num_edges=edges.numpy(),
        x=packed.x.numpy(),
        edge_index=(packed.edge_index - torch.repeat_interleave(first, edges)).numpy(),
        edge_attr=packed.edge_attr.numpy(),
        y=packed.y.numpy(),
        **labels,
    )


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
        texts = [target_text(value) for value in values.tolist()]
        for text in texts:
            fact.see(text)
        # The distinct values decide; only how many there are in all matters beyond them.
        fact.present = fact.numbers = int(counts.sum())
        fact.whole = fact.present if y.dtype.kind in "iu" else 0
    if kind is None and y.dtype.kind in "iu" and y.shape[1] == 1 and len(facts[0].distinct) > 1:
        largest = int(y.max())
        kind = "binary" if largest == 1 else "multiclass"
        facts[0].distinct = {str(value) for value in range(largest + 1)}
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
