"""What a model may read of a graph besides encodings of nodes and pairs: lists of its parts, such as rings.

A structure is computed graph by graph, on CPU, with numbers that count within the graph, and laid end to end for a batch. Graphs
come again every epoch, so results are kept in memory, by the graph's edges, up to a limit.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from grit.graphs.chunk import Array
from grit.graphs.packed import PackedGraphs
from grit.graphs.tensor_tree import TensorTree

_KEPT_BYTES = 1 << 28
_NARROW = {"i": (np.int8, np.int16, np.int32), "f": (np.float16, np.float32)}
NODE, EDGE, VALUE = "node", "edge", "value"


class OneGraph(NamedTuple):
    """A graph: its number of nodes, and its listed edges, (2, E) int64, sources first."""

    num_nodes: int
    edge_index: Array


@dataclass(frozen=True)
class StructureKind:
    """One entry of `STRUCTURES`.

    Attributes:
        compute: (graph, size) -> its parts by name, each an array with one column per item. Whole numbers are int64 with a
            row for each entry of ``parts``; other values are float64 of one dimension.
        parts: For each part, what its rows count: ``"node"``, ``"edge"``, ``"value"`` for what is no number of anything, or a
            name of its own, such as ``"ring"``, for things that the structure itself makes. These are numbered from 0 in each
            graph. ``()`` for a part of other values.
        counts: Names of its own -> the part whose row of that name lists them all, 0 to the last.
    """

    compute: Callable[[OneGraph, int], Mapping[str, Array]]
    parts: Mapping[str, tuple[str, ...]]
    counts: Mapping[str, str]


@dataclass(frozen=True, eq=False)
class Structure(TensorTree):
    """A structure of all graphs of a batch, numbered over the batch.

    Attributes:
        parts: By name, (rows, M) int64, or (M,) floating.
        counts: How many there are of what the structure makes, such as rings.
    """

    parts: dict[str, Tensor]
    counts: dict[str, int]


class _Kept:
    """Results by key, in narrow types; the oldest are forgotten first once all take more than a number of bytes."""

    def __init__(self, limit: int) -> None:
        self.limit, self.bytes = limit, 0
        self.results: OrderedDict[bytes, Mapping[str, Array]] = OrderedDict()

    def get(self, key: bytes, compute: Callable[[], Mapping[str, Array]]) -> Mapping[str, Array]:
        found = self.results.get(key)
        if found is None:
            found = self.results[key] = {part: _narrowed(array) for part, array in compute().items()}
            self.bytes += _size(found)
            while self.bytes > self.limit and len(self.results) > 1:
                self.bytes -= _size(self.results.popitem(last=False)[1])
        else:
            self.results.move_to_end(key)
        return found


def _size(parts: Mapping[str, Array]) -> int:
    return sum(array.nbytes for array in parts.values()) + 500  # and the dictionary itself


def _narrowed(array: Array) -> Array:
    """The same numbers in the narrowest type that holds each exactly: most shares of paths are 1 or a half."""
    for dtype in _NARROW.get(array.dtype.kind, ()):
        with np.errstate(over="ignore"):
            narrow = array.astype(dtype)
        if np.array_equal(narrow, array):
            return narrow
    return array


_KEPT = _Kept(_KEPT_BYTES)


def compute_structure(graphs: PackedGraphs, name: str, kind: StructureKind, size: int, dtype: torch.dtype) -> Structure:
    """A structure of every graph of a batch, on the batch's device.

    Args:
        graphs: The batch.
        name: Of the structure, under which results are kept.
        kind: Its entry.
        size: Such as the largest ring.
        dtype: Of values that are no whole numbers.
    """
    edge_index = graphs.edge_index.cpu().numpy()
    node_ptr, edge_ptr = graphs.node_ptr.tolist(), graphs.edge_ptr.tolist()
    found = []
    for g in range(len(graphs)):
        edges = edge_index[:, edge_ptr[g] : edge_ptr[g + 1]] - node_ptr[g]
        graph = OneGraph(node_ptr[g + 1] - node_ptr[g], edges)
        key = blake2b(f"{name}-{size}-{graph.num_nodes}".encode() + edges.tobytes(), digest_size=16).digest()
        found.append(_KEPT.get(key, lambda graph=graph: kind.compute(graph, size)))  # type: ignore[misc]
    first = {NODE: node_ptr[:-1], EDGE: edge_ptr[:-1], VALUE: [0] * len(graphs)}
    counts = {}
    for own, part in kind.counts.items():
        row = kind.parts[part].index(own)
        made = [int(parts[part][row].max(initial=-1)) + 1 for parts in found]
        first[own] = [0, *np.cumsum(made)[:-1].tolist()]
        counts[own] = sum(made)
    return Structure(
        {part: _laid_end_to_end([each[part] for each in found], rows, first, dtype).to(graphs.x.device)
         for part, rows in kind.parts.items()},
        counts,
    )  # fmt: skip


def _laid_end_to_end(
    arrays: Sequence[Array], rows: tuple[str, ...], first: Mapping[str, Sequence[int]], dtype: torch.dtype
) -> Tensor:
    joined = torch.from_numpy(np.concatenate(arrays, axis=-1))
    if not rows:
        return joined.to(dtype)
    lengths = torch.tensor([array.shape[1] for array in arrays])
    shifts = torch.tensor([first[row] for row in rows], dtype=torch.int64)  # (rows, B)
    return joined.long() + torch.repeat_interleave(shifts, lengths, dim=1)
