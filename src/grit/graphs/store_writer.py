"""Writing a graph store: chunk by chunk, with bounded memory, all or nothing."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import numpy as np

import grit
from grit.errors import GritError
from grit.graphs.chunk import Array, GraphChunk
from grit.graphs.schema import GraphSchema, TaskSpec
from grit.graphs.store_format import (
    MANIFEST,
    ArrayInfo,
    Manifest,
    SkippedRow,
    npy_header,
    smallest_integer,
    write_skipped,
)

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
    a process that is killed leaves only the hidden folder, which the next build removes.

    Args:
        path: Where the store will be.
        name: Of the data set.
        graphs: Features and targets.
        task: What is predicted.
        source: Where the data came from.
        built: How it is built, for the manifest.
        molecules: How a SMILES becomes such a graph, for the manifest.
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
        overwrite: bool = False,
    ) -> None:
        if path.exists() and not overwrite:
            raise GritError(f"{str(path)!r} exists already. Choose another place, or say to overwrite it.")
        self.path = path
        self.name, self.graphs, self.task, self.source = name, graphs, task, source
        self.built = {"grit": grit.__version__, **(built or {})}
        self.molecules = molecules
        self.num_graphs = 0
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _remove_abandoned(path)
            self._folder = Path(tempfile.mkdtemp(prefix=f".{path.name}.building-{os.getpid()}-", dir=path.parent))
        except OSError as error:
            raise GritError(f"cannot write to {str(path.parent)!r}: {error}") from None
        names = ["x", "edge_index", "edge_attr", "y", "num_nodes", "num_edges", "row"]
        names += ["label_index", "num_labels"] if graphs.level == "edge" else []
        self._spools = {each: _Spool(self._folder / f"{each}.spool") for each in names}
        self._finished = False

    def append(self, chunk: GraphChunk, rows: Array | None = None) -> None:
        """Add graphs.

        Args:
            chunk: The graphs.
            rows: Numbers of the source rows that they came from; consecutive if not given.
        """
        check_chunk(chunk, self.graphs, first=self.num_graphs)
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
        for name, values in arrays.items():
            self._spools[name].append(name, values)
        self.num_graphs += len(chunk)

    def finish(
        self, splits: Mapping[str, Array], *, rows: int | None = None, skipped: Sequence[SkippedRow] = ()
    ) -> Path:
        """Write the final files and put the store in its place.

        Args:
            splits: Numbers of the graphs in each split.
            rows: Rows of the source that were looked at; the number of graphs if not given.
            skipped: Those that gave no graph.
        """
        if self.num_graphs == 0:
            raise GritError(f"{self.name}: there is no graph to store.{_first_reasons(skipped)}")
        arrays: dict[str, ArrayInfo] = {}
        for name in ("x", "edge_index", "edge_attr", "y", "label_index"):
            if name in self._spools:
                arrays[name] = self._spools[name].write(self._folder / f"{name}.npy")
        for counts, pointer in (("num_nodes", "node_ptr"), ("num_edges", "edge_ptr"), ("num_labels", "label_ptr")):
            if counts in self._spools:
                each = _column(self._spools[counts], self._folder / "counts.tmp")
                arrays[pointer] = self._vector(pointer, np.concatenate([[0], np.cumsum(each, dtype=np.int64)]))
        arrays["row"] = self._vector("row", _column(self._spools["row"], self._folder / "counts.tmp"))
        for split, members in splits.items():
            check_split(split, members, self.num_graphs)
            arrays[f"split_{split}"] = self._vector(f"split_{split}", np.asarray(members, dtype=np.int64))
        for name, spool in self._spools.items():
            spool.file.close()
            (self._folder / f"{name}.spool").unlink()
        (self._folder / "counts.tmp").unlink()
        write_skipped(self._folder, skipped)
        manifest = Manifest(
            name=self.name,
            graphs=self.graphs,
            task=self.task,
            arrays=arrays,
            source=self.source,
            built=self.built,
            rows=self.num_graphs if rows is None else rows,
            skipped=len(skipped),
            molecules=self.molecules,
        )
        (self._folder / MANIFEST).write_text(manifest.model_dump_json(indent=1) + "\n", encoding="utf-8")
        _put_in_place(self._folder, self.path)
        self._finished = True
        return self.path

    def _vector(self, name: str, values: Array) -> ArrayInfo:
        dtype = np.dtype(smallest_integer(int(values.min(initial=0)), int(values.max(initial=0))))
        return write_array(self._folder / f"{name}.npy", [values], dtype, values.shape)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._finished:
            for spool in self._spools.values():
                spool.file.close()
            shutil.rmtree(self._folder, ignore_errors=True)
        if isinstance(error, OSError):
            raise GritError(f"cannot write the store {str(self.path)!r}: {error}") from error


def _column(spool: _Spool, scratch: Path) -> Array:
    """A one-column spool as a vector in memory (one number per graph)."""
    info = spool.write(scratch)
    return np.fromfile(scratch, dtype=info.dtype, offset=128).astype(np.int64)


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
    bound = np.repeat(chunk.num_nodes, chunk.num_edges)
    outside = (chunk.edge_index < 0).any(0) | (chunk.edge_index >= bound).any(0)
    if outside.any():
        edge = int(outside.argmax())
        graph = int(np.searchsorted(np.cumsum(chunk.num_edges), edge, side="right"))
        source, target = chunk.edge_index[:, edge].tolist()
        raise GritError(
            f"graph {first + graph}: the edge {source} -> {target} leaves its {int(chunk.num_nodes[graph])} nodes."
        )


def check_split(name: str, members: Array, num_graphs: int) -> None:
    """Raise unless a split names existing graphs, each once."""
    if not name.isidentifier():
        raise GritError(f"the split name {name!r} is not a simple word.")
    if members.size and (members.min() < 0 or members.max() >= num_graphs):
        raise GritError(f"split {name!r} names graphs outside 0..{num_graphs - 1}.")
    if np.unique(members).size != members.size:
        raise GritError(f"split {name!r} names a graph twice.")


def _first_reasons(skipped: Sequence[SkippedRow]) -> str:
    shown = "; ".join(f"line {each.line}: {each.reason}" for each in skipped[:3])
    return f" {len(skipped)} rows were looked at and none could be read ({shown})." if skipped else ""


def _put_in_place(folder: Path, path: Path) -> None:
    if path.exists():
        old = Path(tempfile.mkdtemp(prefix=f".{path.name}.building-{os.getpid()}-old-", dir=path.parent))
        os.rename(path, old / "replaced")
        os.rename(folder, path)
        shutil.rmtree(old)
    else:
        os.rename(folder, path)


def _remove_abandoned(path: Path) -> None:
    """Folders of builds whose process is gone."""
    prefix = f".{path.name}.building-"
    for folder in path.parent.glob(f"{prefix}*"):
        process = folder.name.removeprefix(prefix).split("-")[0]
        if process.isdigit() and not _is_running(int(process)):
            shutil.rmtree(folder, ignore_errors=True)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
