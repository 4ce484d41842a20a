"""`GraphStore`: all graphs of a data set as contiguous arrays, on disk and memory-mapped, or in memory.

Opening takes constant time and a batch is gathered with a few vectorised operations: there is no Python object per graph, and
no encoding is stored. `grit.graphs.store_format` says what the files hold.
"""

import mmap
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from grit.errors import GritError
from grit.graphs.batch import PairBatch
from grit.graphs.chunk import Array, GraphChunk
from grit.graphs.packed import PackedGraphs
from grit.graphs.schema import GraphSchema, TaskSpec
from grit.graphs.store_format import (
    EDGE_LEVEL,
    REQUIRED,
    Manifest,
    SkippedRow,
    map_array,
    read_manifest,
    read_skipped,
    sha256_of,
)
from grit.graphs.store_writer import check_chunk, check_split

# Pages of the files that were read stay in the process's count of memory until the system needs them, and the system maps many
# more than were asked for. Stores larger than this hand them back after every batch, so that a pass over any store shows a
# small process; they remain in the system's cache, so that reading them again costs little.
_RELEASE_FROM_BYTES = 128 << 20


class GraphStore:
    """Read access to a stored data set. Open one with `GraphStore.open`, make one with `StoreWriter` or `in_memory`.

    Attributes:
        manifest: What the store is.
        path: Its folder; None for a store in memory.
    """

    def __init__(
        self,
        manifest: Manifest,
        arrays: Mapping[str, Array],
        mappings: list[mmap.mmap],
        path: Path | None,
        skipped: Sequence[SkippedRow] = (),
    ) -> None:
        self.manifest = manifest
        self._skipped = list(skipped)
        self.path = path
        self._arrays = dict(arrays)
        self._mappings = mappings
        self._is_large = sys.platform == "linux" and sum(len(mapping) for mapping in mappings) > _RELEASE_FROM_BYTES

    @classmethod
    def open(cls, path: str | Path) -> "GraphStore":
        """Open a store; its files are checked for presence and size, not read."""
        folder = Path(path)
        manifest = read_manifest(folder)
        wanted = {*REQUIRED, *(EDGE_LEVEL if manifest.graphs.level == "edge" else ())}
        missing = sorted(wanted - manifest.arrays.keys())
        if missing:
            raise GritError(f"the store {str(folder)!r} is damaged: it lacks {', '.join(missing)}. Build it again.")
        arrays, mappings = {}, []
        for name, info in manifest.arrays.items():
            if not name.isidentifier():
                raise GritError(f"the store {str(folder)!r} is damaged: {name!r} is no array name. Build it again.")
            arrays[name], mapping = map_array(folder, name, info)
            if mapping is not None:
                mappings.append(mapping)
        store = cls(manifest, arrays, mappings, folder)
        store._check_shapes()
        return store

    @classmethod
    def in_memory(
        cls,
        chunk: GraphChunk,
        *,
        name: str,
        graphs: GraphSchema,
        task: TaskSpec,
        splits: Mapping[str, Array],
        rows: Array | None = None,
        skipped: Sequence[SkippedRow] = (),
        molecules: str | None = None,
    ) -> "GraphStore":
        """A store without files, for data that fits in memory; arguments as in `StoreWriter`."""
        check_chunk(chunk, graphs, first=0)
        for split, members in splits.items():
            check_split(split, np.asarray(members), len(chunk))
        arrays = {
            "x": chunk.x,
            "edge_index": np.ascontiguousarray(chunk.edge_index.T),
            "edge_attr": chunk.edge_attr,
            "y": chunk.y,
            "node_ptr": np.concatenate([[0], np.cumsum(chunk.num_nodes)]),
            "edge_ptr": np.concatenate([[0], np.cumsum(chunk.num_edges)]),
            "row": np.arange(len(chunk)) if rows is None else rows,
            **{f"split_{split}": np.asarray(members) for split, members in splits.items()},
        }
        if chunk.label_index is not None and chunk.num_labels is not None:
            arrays["label_index"] = np.ascontiguousarray(chunk.label_index.T)
            arrays["label_ptr"] = np.concatenate([[0], np.cumsum(chunk.num_labels)])
        manifest = Manifest(
            name=name,
            graphs=graphs,
            task=task,
            arrays={},
            source="memory",
            built={},
            rows=len(chunk) + len(skipped),
            skipped=len(skipped),
            molecules=molecules,
        )
        store = cls(manifest, arrays, [], None, skipped)
        store._check_shapes()
        return store

    @property
    def schema(self) -> GraphSchema:
        """Features and targets."""
        return self.manifest.graphs

    @property
    def task(self) -> TaskSpec:
        """What is predicted."""
        return self.manifest.task

    @property
    def name(self) -> str:
        """Of the data set."""
        return self.manifest.name

    @property
    def rows(self) -> Array:
        """(B,): the row of the source that each graph came from."""
        return self._arrays["row"]

    @property
    def splits(self) -> dict[str, Array]:
        """Numbers of the graphs in each split."""
        return {
            name.removeprefix("split_"): values for name, values in self._arrays.items() if name.startswith("split_")
        }

    def split(self, name: str) -> Array:
        """Numbers of the graphs in one split."""
        splits = self.splits
        if name not in splits:
            raise GritError(f"{self.name} has no split {name!r}; there are {', '.join(splits) or 'none'}.")
        return splits[name]

    @property
    def skipped(self) -> list[SkippedRow]:
        """Rows of the source that gave no graph, with the reasons."""
        return self._skipped if self.path is None else read_skipped(self.path)

    def __len__(self) -> int:
        return int(self._arrays["node_ptr"].size - 1)

    def __repr__(self) -> str:
        splits = ", ".join(f"{name} {members.size:,}" for name, members in self.splits.items())
        return f"GraphStore({self.name!r}, {len(self):,} graphs{f' ({splits})' if splits else ''})"

    def nodes_per_graph(self, indices: Array | None = None) -> Array:
        """Number of nodes of each graph, or of those given, int64."""
        pointer = self._arrays["node_ptr"]
        if indices is None:
            return np.diff(pointer.astype(np.int64))
        nodes: Array = pointer[indices + 1].astype(np.int64) - pointer[indices].astype(np.int64)
        return nodes

    def array(self, name: str) -> Array:
        """One of the arrays, see `grit.graphs.store_format`; read-only."""
        return self._arrays[name]

    def with_splits(self, splits: Mapping[str, Array]) -> "GraphStore":
        """The same graphs in memory, divided otherwise."""
        for split, members in splits.items():
            check_split(split, np.asarray(members), len(self))
        arrays = {name: values for name, values in self._arrays.items() if not name.startswith("split_")}
        arrays |= {f"split_{split}": np.asarray(members) for split, members in splits.items()}
        return GraphStore(self.manifest.model_copy(update={"arrays": {}}), arrays, [], None, self.skipped)

    def with_task(self, task: TaskSpec) -> "GraphStore":
        """The same graphs in memory with another loss or metric; the number of outputs must stay."""
        if task.num_outputs != self.schema.num_outputs:
            raise GritError(f"the task has {task.num_outputs} outputs, the data {self.schema.num_outputs}.")
        manifest = self.manifest.model_copy(update={"arrays": {}, "task": task})
        return GraphStore(manifest, self._arrays, [], None, self.skipped)

    @property
    def num_bytes(self) -> int:
        """Size of all arrays."""
        return sum(values.nbytes for values in self._arrays.values())

    def targets(self, indices: Array) -> Array:
        """Targets of these graphs, (R, T), without the graphs themselves."""
        chosen = self._checked(indices) if len(indices) else np.zeros(0, dtype=np.int64)
        pointer = {"graph": None, "node": "node_ptr", "edge": "label_ptr"}[self.schema.level]
        rows = chosen
        if pointer is not None and chosen.size:
            rows, _ = self._ranges(pointer, chosen, len(self._arrays["y"]))
        values: Array = self._arrays["y"][rows]
        return values

    def gather(self, indices: Iterable[int] | Array | torch.Tensor) -> PackedGraphs:
        """The graphs with these numbers, in this order, laid end to end."""
        chosen = self._checked(indices)
        nodes, node_ptr = self._ranges("node_ptr", chosen, self._arrays["x"].shape[0])
        edges, edge_ptr = self._ranges("edge_ptr", chosen, self._arrays["edge_index"].shape[0])
        first_node = np.repeat(node_ptr[:-1], np.diff(edge_ptr))
        label_index = None
        level = self.schema.level
        if level == "edge":
            rows, label_ptr = self._ranges("label_ptr", chosen, self._arrays["label_index"].shape[0])
            local = self._arrays["label_index"][rows].T.astype(np.int64)
            label_index = torch.from_numpy(local + np.repeat(node_ptr[:-1], np.diff(label_ptr)))
        else:
            rows = nodes if level == "node" else chosen
        graphs = PackedGraphs(
            x=_tensor(self._arrays["x"][nodes]),
            edge_index=torch.from_numpy(self._arrays["edge_index"][edges].T.astype(np.int64) + first_node),
            edge_attr=_tensor(self._arrays["edge_attr"][edges]),
            node_ptr=torch.from_numpy(node_ptr),
            edge_ptr=torch.from_numpy(edge_ptr),
            y=_tensor(self._arrays["y"][rows]),
            label_index=label_index,
        )
        self._release()
        return graphs

    def take(
        self,
        indices: Iterable[int] | Array | torch.Tensor,
        walk_steps: int = 21,
        *,
        encoding: str = "rrwp",
        pairs: str = "all",
        dtype: torch.dtype = torch.float32,
    ) -> PairBatch:
        """A batch of these graphs, encodings computed on the spot; see `PairBatch.from_graphs` for the arguments."""
        return PairBatch.from_graphs(self.gather(indices), walk_steps, encoding=encoding, pairs=pairs, dtype=dtype)

    def verify(self) -> None:
        """Read every file and compare it with its checksum."""
        if self.path is None:
            return
        for name, info in self.manifest.arrays.items():
            if sha256_of(self.path / f"{name}.npy") != info.sha256:
                raise GritError(f"the store {str(self.path)!r} is damaged: {name}.npy has changed. Build it again.")

    def __reduce__(self) -> Any:
        """Worker processes open the files themselves; a store in memory is copied."""
        if self.path is not None:
            return GraphStore.open, (self.path,)
        return GraphStore, (self.manifest, self._arrays, [], None, self._skipped)

    def _check_shapes(self) -> None:
        arrays, graphs = self._arrays, len(self)
        rows = {"graph": graphs, "node": len(arrays["x"]), "edge": len(arrays.get("label_index", ()))}[
            self.schema.level
        ]
        consistent = (
            all(arrays[name].ndim == 2 for name in ("x", "edge_index", "edge_attr", "y"))
            and all(arrays[name].ndim == 1 for name in ("node_ptr", "edge_ptr", "row"))
            and arrays["node_ptr"].size == arrays["edge_ptr"].size == arrays["row"].size + 1
            and arrays["edge_index"].shape == (len(arrays["edge_attr"]), 2)
            and len(arrays["y"]) == rows
            and int(arrays["node_ptr"][-1]) == len(arrays["x"])
            and int(arrays["edge_ptr"][-1]) == len(arrays["edge_index"])
            and all(members.ndim == 1 for members in self.splits.values())
        )
        if not consistent:
            raise GritError(f"the store {str(self.path)!r} is damaged: its arrays do not fit together. Build it again.")

    def _checked(self, indices: Iterable[int] | Array | torch.Tensor) -> Array:
        chosen = np.asarray(indices if isinstance(indices, np.ndarray | torch.Tensor) else list(indices))
        if chosen.ndim != 1 or chosen.size == 0 or chosen.dtype.kind not in "iu":
            raise GritError(f"take needs a list of graph numbers, got {chosen.dtype} of shape {chosen.shape}.")
        chosen = chosen.astype(np.int64)
        if chosen.min() < 0 or chosen.max() >= len(self):
            raise GritError(f"{self.name} has graphs 0 to {len(self) - 1}, asked for {chosen.min()} to {chosen.max()}.")
        return chosen

    def _ranges(self, pointer: str, chosen: Array, total: int) -> tuple[Array, Array]:
        """Rows of the chosen graphs one after the other, and where each begins in the result."""
        start = self._arrays[pointer][chosen].astype(np.int64)
        stop = self._arrays[pointer][chosen + 1].astype(np.int64)
        if (start > stop).any() or start.min() < 0 or stop.max() > total:
            raise GritError(f"the store {str(self.path)!r} is damaged: {pointer} does not rise. Build it again.")
        begin = np.zeros(chosen.size + 1, dtype=np.int64)
        np.cumsum(stop - start, out=begin[1:])
        return np.repeat(start - begin[:-1], stop - start) + np.arange(begin[-1]), begin

    def _release(self) -> None:
        if self._is_large:
            for mapping in self._mappings:
                mapping.madvise(mmap.MADV_DONTNEED)


def _tensor(values: Array) -> torch.Tensor:
    return torch.from_numpy(values.astype(np.float32 if values.dtype.kind == "f" else np.int64))
