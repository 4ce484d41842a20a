"""`GraphStore`: all graphs of a data set as contiguous arrays, on disk and memory-mapped, or in memory.

Opening takes milliseconds and a batch is gathered with a few vectorised operations: there is no Python object per graph, and
no encoding is stored. `grit.graphs.store_format` says what the files hold.
"""

import mmap
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from grit.errors import GritError
from grit.graphs.chunk import NODE_SPLITS, Array, GraphChunk, check_chunk, check_divided, check_split, check_splits
from grit.graphs.packed import PackedGraphs
from grit.graphs.schema import GraphInputs, GraphSchema, TaskSpec
from grit.graphs.store_check import (
    CheckProgress,
    Stamps,
    check_opened,
    remember,
    stamps_of,
    verify_checksums,
    verify_content,
    verify_if_changed,
)
from grit.graphs.store_format import (
    EDGE_LEVEL,
    REQUIRED,
    Manifest,
    SkippedRow,
    damaged,
    map_array,
    read_manifest,
    read_skipped,
)
from grit.graphs.store_place import is_there

# Pages of the files that were read stay in the process's count of memory until the system needs them, and the system maps many
# more than were asked for. Stores larger than this hand them back after every batch, so that a pass over any store shows a
# small process; they remain in the system's cache, so that reading them again costs little.
_RELEASE_FROM_BYTES = 128 << 20

# A small store takes as long to open as to build, so that a few openings in a row may each meet a build. Somebody who replaces
# a store for this long without a pause is waited for in vain.
KEEP_TRYING_SECONDS = 30


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
        self._stamps: Stamps | None = None
        self._is_large = sys.platform == "linux" and sum(len(mapping) for mapping in mappings) > _RELEASE_FROM_BYTES

    @classmethod
    def open(cls, path: str | Path, *, verify: bool = True) -> "GraphStore":
        """Open a store.

        Args:
            path: Its folder.
            verify: Whether to read and verify all of it if it was built elsewhere, copied or touched since that was last done
                (`grit.graphs.store_check`). Otherwise only what takes milliseconds is checked.
        """
        folder = Path(path)
        tries, deadline = 0, time.monotonic() + KEEP_TRYING_SECONDS
        while tries < 10 or time.monotonic() < deadline:
            tries += 1
            is_there(folder)
            before = _identity(folder)
            try:
                store = cls._map(folder)
                if verify:
                    store._stamps = verify_if_changed(folder, store.manifest)
            except GritError:
                if _identity(folder) == before:
                    raise
            else:
                if _identity(folder) == before:
                    return store
        raise GritError(f"the store {str(folder)!r} is being replaced again and again. Try later.")

    @classmethod
    def _map(cls, folder: Path) -> "GraphStore":
        manifest = read_manifest(folder)
        wanted = {*REQUIRED, *(EDGE_LEVEL if manifest.graphs.level == "edge" else ())}
        wanted |= {"graph_attr"} if manifest.graphs.graph_features else set()
        missing = sorted(wanted - manifest.arrays.keys())
        if missing:
            raise damaged(folder, f"it lacks {', '.join(missing)}")
        arrays, mappings = {}, []
        for name, info in manifest.arrays.items():
            if not name.isidentifier():
                raise damaged(folder, f"{name!r} is no array name")
            arrays[name], mapping = map_array(folder, name, info)
            if mapping is not None:
                mappings.append(mapping)
        check_opened(folder, manifest, arrays)
        store = cls(manifest, arrays, mappings, folder)
        store._release()
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
        built: Mapping[str, str] | None = None,
        inputs: GraphInputs | None = None,
    ) -> "GraphStore":
        """A store without files, for data that fits in memory; arguments as in `StoreWriter`."""
        check_chunk(chunk, graphs, first=0)
        members_of = {split: np.asarray(members, dtype=np.int64) for split, members in splits.items()}
        if chunk.node_split is None:
            check_splits(members_of, len(chunk))
        else:
            check_divided(members_of, chunk.node_split, chunk.num_nodes)
        arrays = {
            "x": chunk.x,
            "edge_index": np.ascontiguousarray(chunk.edge_index.T),
            "edge_attr": chunk.edge_attr,
            "y": chunk.y,
            "node_ptr": np.concatenate([[0], np.cumsum(chunk.num_nodes)]),
            "edge_ptr": np.concatenate([[0], np.cumsum(chunk.num_edges)]),
            "row": np.arange(len(chunk)) if rows is None else rows,
            **{f"split_{split}": members for split, members in members_of.items()},
        }
        if chunk.label_index is not None and chunk.num_labels is not None:
            arrays["label_index"] = np.ascontiguousarray(chunk.label_index.T)
            arrays["label_ptr"] = np.concatenate([[0], np.cumsum(chunk.num_labels)])
        if chunk.node_split is not None:
            arrays["node_split"] = chunk.node_split
        if chunk.graph_attr is not None:
            arrays["graph_attr"] = chunk.graph_attr
        if chunk.graph_weight is not None:
            arrays["graph_weight"] = chunk.graph_weight[:, None]
        manifest = Manifest(
            name=name,
            graphs=graphs,
            task=task,
            arrays={},
            source="memory",
            built=dict(built or {}),
            rows=len(chunk) + len(skipped),
            skipped=len(skipped),
            molecules=molecules,
            inputs=inputs,
        )
        check_opened(None, manifest, arrays)
        return cls(manifest, arrays, [], None, skipped)

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
    def divides_nodes(self) -> bool:
        """Whether nodes of one graph are in different splits, so that a split counts nodes, not graphs."""
        return "node_split" in self._arrays

    def split_size(self, name: str) -> int:
        """How many graphs a split has; how many nodes, if the store `divides_nodes`."""
        members = self.split(name)
        if not self.divides_nodes:
            return int(members.size)
        return int((self._arrays["node_split"] == NODE_SPLITS.index(name) + 1).sum())

    @property
    def skipped(self) -> list[SkippedRow]:
        """Rows of the source that gave no graph, with the reasons."""
        return self._skipped if self.path is None else read_skipped(self.path)

    def __len__(self) -> int:
        return int(self._arrays["node_ptr"].size - 1)

    def __repr__(self) -> str:
        splits = ", ".join(f"{name} {self.split_size(name):,}" for name in self.splits)
        nodes = f" of {len(self._arrays['x']):,} nodes" if self.divides_nodes else ""
        return f"GraphStore({self.name!r}, {len(self):,} graphs{nodes}{f' ({splits})' if splits else ''})"

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
        """The same graphs in memory, divided otherwise, each with all its nodes; a graph may be in two splits."""
        for split, members in splits.items():
            check_split(split, np.asarray(members), len(self))
        kept = (name for name in self._arrays if not name.startswith("split_") and name != "node_split")
        arrays = {name: self._arrays[name] for name in kept}
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

    def targets(self, indices: Array, split: str | None = None) -> Array:
        """Targets of these graphs, (R, T), without the graphs themselves.

        Args:
            indices: Numbers of the graphs.
            split: If the store `divides_nodes`: only those of the nodes in this split.
        """
        chosen = self._checked(indices) if len(indices) else np.zeros(0, dtype=np.int64)
        pointer = {"graph": None, "node": "node_ptr", "edge": "label_ptr"}[self.schema.level]
        rows = chosen
        if pointer is not None and chosen.size:
            rows, _ = self._ranges(pointer, chosen, len(self._arrays["y"]))
        others = self._in_other_splits(rows, split)
        values: Array = self._arrays["y"][rows if others is None else rows[~others]]
        return values

    def graph_attr(self, indices: Iterable[int] | Array | torch.Tensor) -> Array:
        """Numbers that these graphs carry beside their nodes and edges, (n, F), NaN where missing; (n, 0) if there are none."""
        chosen = self._checked(indices)
        values: Array = (
            self._arrays["graph_attr"][chosen] if "graph_attr" in self._arrays else np.zeros((chosen.size, 0))
        )
        return values

    def weights(self, indices: Iterable[int] | Array | torch.Tensor) -> Array | None:
        """How much each of these graphs counts in the loss, (n,); None where all count alike."""
        return self._arrays["graph_weight"][self._checked(indices), 0] if "graph_weight" in self._arrays else None

    def in_split(self, indices: Array, split: str) -> Array:
        """Of a store that `divides_nodes`: which nodes of these graphs are in the split, (N,)."""
        nodes, _ = self._ranges("node_ptr", self._checked(indices), len(self._arrays["x"]))
        others = self._in_other_splits(nodes, split)
        return np.ones(nodes.size, dtype=bool) if others is None else ~others

    def gather(self, indices: Iterable[int] | Array | torch.Tensor, split: str | None = None) -> PackedGraphs:
        """The graphs with these numbers, in this order, laid end to end.

        Args:
            indices: Numbers of the graphs.
            split: If the store `divides_nodes`: targets of nodes that are not in this split are unknown (NaN), so that neither
                loss nor metrics can count them.
        """
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
        y = _tensor(self._arrays["y"][rows])
        others = self._in_other_splits(rows, split)
        if others is not None:
            y = y.float()
            y[torch.from_numpy(others)] = torch.nan
        weight = self._per_graph("graph_weight", chosen)
        graphs = PackedGraphs(
            x=_tensor(self._arrays["x"][nodes]),
            edge_index=torch.from_numpy(self._arrays["edge_index"][edges].T.astype(np.int64) + first_node),
            edge_attr=_tensor(self._arrays["edge_attr"][edges]),
            node_ptr=torch.from_numpy(node_ptr),
            edge_ptr=torch.from_numpy(edge_ptr),
            y=y,
            label_index=label_index,
            graph_attr=self._per_graph("graph_attr", chosen),
            graph_weight=None if weight is None else weight[:, 0],
        )
        self._release()
        return graphs

    def verify(self, progress: CheckProgress | None = None) -> None:
        """Read everything: raise unless all files have their checksums, and all graphs, targets and splits are sound.

        Args:
            progress: Told how far it is.
        """
        if self.path is None:
            return
        stamps = stamps_of(self.path, self.manifest)
        verify_checksums(self.path, self.manifest, progress)
        verify_content(self.path, self.manifest, self._arrays, progress)
        if len(self.skipped) != self.manifest.skipped:
            raise damaged(self.path, f"{len(self.skipped)} skipped rows are listed, expected {self.manifest.skipped}")
        self._release()
        remember(self.path, stamps)

    def __reduce__(self) -> Any:
        """Worker processes open the files themselves; a store in memory is copied."""
        if self.path is not None:
            return _reopen, (self.path, self.manifest, self._stamps)
        return GraphStore, (self.manifest, self._arrays, [], None, self._skipped)

    def _checked(self, indices: Iterable[int] | Array | torch.Tensor) -> Array:
        chosen = np.asarray(indices if isinstance(indices, np.ndarray | torch.Tensor) else list(indices))
        if chosen.ndim != 1 or chosen.size == 0 or chosen.dtype.kind not in "iu":
            raise GritError(f"gather needs a list of graph numbers, got {chosen.dtype} of shape {chosen.shape}.")
        chosen = chosen.astype(np.int64)
        if chosen.min() < 0 or chosen.max() >= len(self):
            raise GritError(f"{self.name} has graphs 0 to {len(self) - 1}, asked for {chosen.min()} to {chosen.max()}.")
        return chosen

    def _per_graph(self, name: str, chosen: Array) -> torch.Tensor | None:
        """Numbers of the chosen graphs, (n, F) floating, if the store has such."""
        return torch.from_numpy(self._arrays[name][chosen].astype(np.float32)) if name in self._arrays else None

    def _in_other_splits(self, nodes: Array, split: str | None) -> Array | None:
        """Which of these nodes are not in the split; None where that is no question."""
        if split is None or not self.divides_nodes:
            return None
        self.split(split)
        others: Array = self._arrays["node_split"][nodes] != NODE_SPLITS.index(split) + 1
        return others

    def _ranges(self, pointer: str, chosen: Array, total: int) -> tuple[Array, Array]:
        """Rows of the chosen graphs one after the other, and where each begins in the result."""
        start = self._arrays[pointer][chosen].astype(np.int64)
        stop = self._arrays[pointer][chosen + 1].astype(np.int64)
        if (start > stop).any() or start.min() < 0 or stop.max() > total:
            raise damaged(self.path, f"{pointer} does not rise")
        begin = np.zeros(chosen.size + 1, dtype=np.int64)
        np.cumsum(stop - start, out=begin[1:])
        return np.repeat(start - begin[:-1], stop - start) + np.arange(begin[-1]), begin

    def _release(self) -> None:
        if self._is_large:
            for mapping in self._mappings:
                mapping.madvise(mmap.MADV_DONTNEED)


def _reopen(path: Path, manifest: Manifest, stamps: Stamps | None) -> GraphStore:
    """The store that another process has open, without verifying it again."""
    store = GraphStore.open(path, verify=False)
    if store.manifest != manifest:
        raise GritError(f"the store {str(path)!r} was replaced while it was in use. Start again.")
    store._stamps = verify_if_changed(path, manifest, known=stamps)
    return store


def _identity(folder: Path) -> tuple[int, int] | None:
    try:
        found = folder.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _tensor(values: Array) -> torch.Tensor:
    return torch.from_numpy(values.astype(np.float32 if values.dtype.kind == "f" else np.int64))
