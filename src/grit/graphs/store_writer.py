"""Writing a graph store: chunk by chunk, with bounded memory, all or nothing."""

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import numpy as np

from grit.errors import GritError
from grit.graphs.chunk import Array, GraphChunk, check_chunk, check_divided, check_splits
from grit.graphs.schema import GraphInputs, GraphSchema, TaskSpec
from grit.graphs.store_check import check_targets, remember, stamps_of
from grit.graphs.store_format import (
    HEADER_BYTES,
    MANIFEST,
    PER_GRAPH,
    SKIPPED,
    ArrayInfo,
    Manifest,
    SkippedRow,
    manifest_text,
    npy_header,
    sha256_of,
    smallest_integer,
    version_for,
    write_skipped,
)
from grit.graphs.store_place import BuildingFolder
from grit.version import VERSION

_COPY_ROWS = 1 << 20


class _Spool:
    """One growing array: pieces on disk in their own small types, and the range that they cover."""

    def __init__(self, path: Path) -> None:
        self.file: BinaryIO = path.open("w+b")
        self.pieces: list[tuple[np.dtype[Any], int]] = []
        self.width: int | None = None
        self.low, self.high = 0, 0
        self.is_float = False
        self.rows = 0

    def append(self, name: str, values: Array) -> None:
        if self.width is None:
            self.width = values.shape[1]
        elif values.shape[1] != self.width:
            raise GritError(f"{name} has {values.shape[1]} columns, earlier graphs have {self.width}.")
        if values.dtype.kind == "f":
            if self.pieces and not self.is_float:
                raise GritError(f"{name} holds floating-point numbers, earlier graphs hold integers.")
            self.is_float = True
            small = values.astype(np.float32)
        elif values.dtype.kind in "iub":
            if self.is_float:
                raise GritError(f"{name} holds integers, earlier graphs hold floating-point numbers.")
            low, high = (int(values.min()), int(values.max())) if values.size else (0, 0)
            self.low, self.high = min(self.low, low), max(self.high, high)
            small = values.astype(smallest_integer(low, high))
        else:
            raise GritError(f"{name} must hold numbers, got {values.dtype}.")
        self.file.write(np.ascontiguousarray(small).data)
        self.pieces.append((small.dtype, small.shape[0]))
        self.rows += small.shape[0]

    def write(self, path: Path) -> ArrayInfo:
        """The final file, all pieces in one type."""
        dtype = np.dtype("float32" if self.is_float else smallest_integer(self.low, self.high))
        width = self.width or 0
        self.file.seek(0)

        def blocks() -> Iterable[Array]:
            for piece, rows in self.pieces:
                for start in range(0, rows, _COPY_ROWS):
                    count = min(_COPY_ROWS, rows - start)
                    data = self.file.read(count * width * piece.itemsize)
                    yield np.frombuffer(data, dtype=piece).astype(dtype)

        return write_array(path, blocks(), dtype, (self.rows, width))


def write_array(path: Path, blocks: Iterable[Array], dtype: np.dtype[Any], shape: tuple[int, ...]) -> ArrayInfo:
    """Write one array file from consecutive blocks."""
    digest = hashlib.sha256()
    with path.open("wb") as file:
        file.write(npy_header(dtype, shape))
        for block in blocks:
            data = np.ascontiguousarray(block, dtype=dtype).tobytes()
            digest.update(data)
            file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return ArrayInfo.model_validate({"dtype": dtype.name, "shape": shape, "sha256": digest.hexdigest()})


class StoreWriter:
    """Build a store in a hidden folder beside its place, and move it there when it is complete.

    Use as a context: ``append`` chunks, then ``finish``. Leaving without ``finish``, or by an exception, leaves nothing behind;
    `grit.graphs.store_place` says what a process that is killed leaves, and who clears it away.

    Args:
        path: Where the store will be.
        name: Of the data set.
        graphs: Features and targets.
        task: What is predicted.
        source: Where the data came from.
        built: How it is built, for the manifest.
        molecules: How a SMILES becomes such a graph, for the manifest.
        inputs: What the numbers of each graph are, for the manifest.
        overwrite: Whether a store that is there already is replaced.
    """

    def __init__(
        self,
        path: Path,
        *,
        name: str,
        graphs: GraphSchema,
        task: TaskSpec,
        source: str,
        built: Mapping[str, str] | None = None,
        molecules: str | None = None,
        inputs: GraphInputs | None = None,
        overwrite: bool = False,
    ) -> None:
        self.path = path
        self.name, self.graphs, self.task, self.source = name, graphs, task, source
        self.built = {"grit": VERSION, **(built or {})}
        self.molecules, self.inputs = molecules, inputs
        self.num_graphs = 0
        self._place = BuildingFolder(path, overwrite=overwrite)
        self._folder = self._place.store
        names = ["x", "edge_index", "edge_attr", "y", "num_nodes", "num_edges", "row"]
        names += {"graph": [*PER_GRAPH], "node": ["node_split"], "edge": ["label_index", "num_labels"]}[graphs.level]
        self._spools: dict[str, _Spool] = {}
        try:
            for each in names:
                self._spools[each] = _Spool(self._folder / f"{each}.spool")
        except OSError as error:
            self._clear()
            raise self._cannot_write(error) from None

    def append(self, chunk: GraphChunk, rows: Array | None = None) -> None:
        """Add graphs.

        Args:
            chunk: The graphs.
            rows: Numbers of the source rows that they came from; consecutive if not given.
        """
        check_chunk(chunk, self.graphs, first=self.num_graphs)
        check_targets(chunk.y, self.task)
        if rows is None:
            rows = np.arange(self.num_graphs, self.num_graphs + len(chunk))
        arrays = {
            "x": chunk.x,
            "edge_index": chunk.edge_index.T,
            "edge_attr": chunk.edge_attr,
            "y": chunk.y,
            "num_nodes": chunk.num_nodes[:, None],
            "num_edges": chunk.num_edges[:, None],
            "row": rows[:, None],
        }
        if chunk.label_index is not None and chunk.num_labels is not None:
            arrays |= {"label_index": chunk.label_index.T, "num_labels": chunk.num_labels[:, None]}
        if chunk.node_split is not None:
            arrays["node_split"] = chunk.node_split[:, None]
        if self.num_graphs and self._divides_nodes != (chunk.node_split is not None):
            raise GritError("either all graphs say which split each of their nodes is in, or none.")
        if chunk.graph_attr is not None:
            arrays["graph_attr"] = chunk.graph_attr
        if chunk.graph_weight is not None:
            arrays["graph_weight"] = chunk.graph_weight[:, None]
        if self.num_graphs and self._holds("graph_weight") != (chunk.graph_weight is not None):
            raise GritError("either all graphs have a weight, or none.")
        for name, values in arrays.items():
            self._spools[name].append(name, values)
        self.num_graphs += len(chunk)

    def finish(
        self,
        splits: Mapping[str, Array],
        *,
        rows: int | None = None,
        skipped: Sequence[SkippedRow] = (),
        found_out: Mapping[str, str] | None = None,
    ) -> Path:
        """Write the final files and put the store in its place.

        Args:
            splits: Numbers of the graphs in each split.
            rows: Rows of the source that were looked at; the number of graphs if not given.
            skipped: Those that gave no graph.
            found_out: What else the manifest says of how the store was built.
        """
        if self.num_graphs == 0:
            raise GritError(f"{self.name}: there is no graph to store.")
        arrays: dict[str, ArrayInfo] = {}
        for name in ("x", "edge_index", "edge_attr", "y", "label_index"):
            if name in self._spools:
                arrays[name] = self._spools[name].write(self._folder / f"{name}.npy")
        for name in PER_GRAPH:
            if self._holds(name):
                arrays[name] = self._spools[name].write(self._folder / f"{name}.npy")
        for counts, pointer in (("num_nodes", "node_ptr"), ("num_edges", "edge_ptr"), ("num_labels", "label_ptr")):
            if counts in self._spools:
                each = _column(self._spools[counts], self._folder / "counts.tmp")
                arrays[pointer] = self._vector(pointer, np.concatenate([[0], np.cumsum(each, dtype=np.int64)]))
        arrays["row"] = self._vector("row", _column(self._spools["row"], self._folder / "counts.tmp"))
        members_of = {split: np.asarray(members, dtype=np.int64) for split, members in splits.items()}
        if self._divides_nodes:
            num_nodes, node_split = (
                _column(self._spools[name], self._folder / "counts.tmp") for name in ("num_nodes", "node_split")
            )
            check_divided(members_of, node_split, num_nodes)
            arrays["node_split"] = self._vector("node_split", node_split)
        else:
            check_splits(members_of, self.num_graphs)
        for split, members in members_of.items():
            arrays[f"split_{split}"] = self._vector(f"split_{split}", members)
        for name, spool in self._spools.items():
            spool.file.close()
            (self._folder / f"{name}.spool").unlink()
        (self._folder / "counts.tmp").unlink()
        write_skipped(self._folder, skipped)
        _sync(self._folder / SKIPPED)
        manifest = Manifest(
            version=version_for(arrays, self.task),
            name=self.name,
            graphs=self.graphs,
            task=self.task,
            arrays=arrays,
            source=self.source,
            built={**self.built, **(found_out or {})},
            rows=self.num_graphs if rows is None else rows,
            skipped=len(skipped),
            molecules=self.molecules,
            inputs=self.inputs,
            skipped_sha256=sha256_of(self._folder / SKIPPED),
        )
        (self._folder / MANIFEST).write_text(manifest_text(manifest), encoding="utf-8")
        _sync(self._folder / MANIFEST)
        remember(self._folder, stamps_of(self._folder, manifest))
        self._place.put_in_place()
        self._place.close()
        return self.path

    @property
    def _divides_nodes(self) -> bool:
        return self._holds("node_split")

    def _holds(self, name: str) -> bool:
        return name in self._spools and self._spools[name].rows > 0

    def _vector(self, name: str, values: Array) -> ArrayInfo:
        dtype = np.dtype(smallest_integer(int(values.min(initial=0)), int(values.max(initial=0))))
        return write_array(self._folder / f"{name}.npy", [values], dtype, values.shape)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._clear()
        if isinstance(error, OSError):
            raise self._cannot_write(error) from error

    def _clear(self) -> None:
        for spool in self._spools.values():
            with suppress(OSError):  # closing writes what is left, and the disk may be full
                spool.file.close()
        self._place.close()

    def _cannot_write(self, error: OSError) -> GritError:
        return GritError(f"cannot write the store {str(self.path)!r}: {error}")


def _sync(path: Path) -> None:
    with path.open("r+b") as file:
        os.fsync(file.fileno())


def _column(spool: _Spool, scratch: Path) -> Array:
    """A one-column spool as a vector in memory (one number per graph)."""
    info = spool.write(scratch)
    return np.fromfile(scratch, dtype=info.dtype, offset=HEADER_BYTES).astype(np.int64)
