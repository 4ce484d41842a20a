"""The files of a graph store: a folder of NumPy arrays and a manifest that describes them.

Arrays are ordinary ``.npy`` files with a header of fixed length, so that a reader need not parse what it is given: it
compares the header with the one that the manifest implies. Integers have the smallest type that fits.

    x           (N, F)   node features            node_ptr   (B + 1,)   first node of each graph
    edge_index  (E, 2)   source, target in graph  edge_ptr   (B + 1,)   first edge of each graph
    edge_attr   (E, F)   edge features            y          (R, T)     targets, R = B, N or Q
    label_index (Q, 2), label_ptr (B + 1,)        labelled pairs, for edge-level targets only
    node_split  (N,)     split of each node: 0 none, 1 train, 2 val, 3 test; only where nodes of one graph are divided
    graph_attr  (B, F)   numbers of each graph beside its nodes and edges, where there are such
    graph_weight (B, 1)  how much each graph counts in the loss, where they do not count alike
    row         (B,)     row of the source that each graph came from
    split_NAME  (S,)     numbers of the graphs in a split; with node_split, of those that have nodes in it

The manifest holds the SHA-256 of every array, of the list of skipped rows, and of itself. Version 1 lacked the last two; it is
still read. A store with node_split has version 3, so that a grit that would train on the targets of all nodes does not open it.
One with graph_attr, graph_weight or targets of several kinds has version 4 for the same reason. All others have version 2.
"""

import csv
import hashlib
import json
import mmap
from collections.abc import Callable, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
)

from grit.errors import GritError
from grit.files.ordinary_file import check_ordinary
from grit.files.spreadsheet import guarded, unguarded
from grit.graphs.chunk import Array
from grit.graphs.schema import GraphInputs, GraphSchema, TaskSpec, without_unused

FORMAT_VERSION = 2
NODE_SPLIT_VERSION = 3
PER_GRAPH_VERSION = 4
MANIFEST = "manifest.json"
SKIPPED = "skipped.csv"
REQUIRED = ("x", "edge_index", "edge_attr", "node_ptr", "edge_ptr", "y", "row")
EDGE_LEVEL = ("label_index", "label_ptr")
PER_GRAPH = ("graph_attr", "graph_weight")
HEADER_BYTES = 128
_INTEGERS = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "int64")

Dtype = Literal["uint8", "int8", "uint16", "int16", "uint32", "int32", "int64", "float32"]


class ArrayInfo(BaseModel):
    """Type, shape and SHA-256 of the numbers in one array file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    dtype: Dtype
    shape: Annotated[tuple[Annotated[int, Field(ge=0, lt=1 << 48)], ...], Field(min_length=1, max_length=2)]
    sha256: str


class Manifest(BaseModel):
    """What a store is: read first, and in constant time.

    Attributes:
        format: Always ``grit-store``.
        version: Of the format.
        name: Of the data set.
        graphs: Features and targets.
        task: What is predicted.
        arrays: The files beside the manifest.
        source: Where the data came from.
        built: How the store was made: options, versions.
        rows: Rows of the source that were looked at.
        skipped: Of these, rows that gave no graph; listed in ``skipped.csv``.
        molecules: How a SMILES becomes such a graph (`grit.datasets.molecules.featurisers`); None if the graphs are no molecules.
        inputs: What the numbers in ``graph_attr`` are; None where there are none, or nobody said.
        skipped_sha256: SHA-256 of ``skipped.csv``; None in version 1 and in memory.
        sha256: Of everything else in the manifest; None in version 1 and in memory.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal["grit-store"] = "grit-store"
    version: int = FORMAT_VERSION
    name: str
    graphs: GraphSchema
    task: TaskSpec
    arrays: dict[str, ArrayInfo]
    source: str
    built: dict[str, str]
    rows: int
    skipped: int = 0
    molecules: str | None = None
    inputs: GraphInputs | None = None
    skipped_sha256: str | None = None
    sha256: str | None = None

    @model_serializer(mode="wrap")
    def _as_before(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return without_unused(dump(self), "inputs")


def version_for(arrays: Mapping[str, ArrayInfo], task: TaskSpec) -> int:
    """The version of a store with these arrays: the oldest that an older grit reads as it is meant, or refuses."""
    if task.kind == "mixed" or any(name in arrays for name in PER_GRAPH):
        return PER_GRAPH_VERSION
    return NODE_SPLIT_VERSION if "node_split" in arrays else FORMAT_VERSION


def manifest_text(manifest: Manifest) -> str:
    """What is written to ``manifest.json``."""
    content = manifest.model_dump(mode="json")
    return json.dumps({**content, "sha256": _digest(content)}, indent=1, ensure_ascii=False) + "\n"


def _digest(content: dict[str, Any]) -> str:
    others = {name: value for name, value in content.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(others, sort_keys=True).encode()).hexdigest()


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a store; an error if there is none, or it is damaged, or newer than this version reads."""
    try:
        text = check_ordinary(folder / MANIFEST).read_text(encoding="utf-8")
        version = _version(text)
        if version is not None and version > PER_GRAPH_VERSION:
            raise GritError(
                f"the store {str(folder)!r} has format version {version}, this grit reads up to {PER_GRAPH_VERSION}. "
                "Update grit, or build the store again."
            )
        manifest = Manifest.model_validate_json(text)
        if manifest.version > 1 and manifest.sha256 != _digest(json.loads(text)):
            raise damaged(folder, f"{MANIFEST} has changed since the store was built")
        return manifest
    except GritError:
        raise
    except (FileNotFoundError, NotADirectoryError):
        why = f"it has no {MANIFEST}" if folder.is_dir() else "there is no such folder"
        raise GritError(f"{str(folder)!r} is not a graph store: {why}.") from None
    except OSError as error:
        raise GritError(f"cannot open the store {str(folder)!r}: {error}.") from None
    except (UnicodeDecodeError, ValidationError, ValueError) as error:
        raise damaged(folder, f"{MANIFEST} cannot be read: {_first_line(error)}") from None


def _version(text: str) -> int | None:
    class Head(BaseModel):
        version: int

    try:
        return Head.model_validate_json(text).version
    except ValidationError:
        return None


def map_array(folder: Path, name: str, info: ArrayInfo) -> tuple[Array, mmap.mmap | None]:
    """One array of a store as a read-only view of its file, and the mapping behind it."""
    path = folder / f"{name}.npy"
    wanted = npy_header(np.dtype(info.dtype), info.shape)
    size = HEADER_BYTES + prod(info.shape) * np.dtype(info.dtype).itemsize
    try:
        with check_ordinary(path).open("rb") as file:
            actual = path.stat().st_size
            if actual != size:
                raise damaged(folder, f"{path.name} has {actual:,} bytes, expected {size:,}")
            if file.read(HEADER_BYTES) != wanted:
                raise damaged(folder, f"the header of {path.name} does not agree with {MANIFEST}")
            if size == HEADER_BYTES:
                return np.zeros(info.shape, dtype=info.dtype), None
            mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise damaged(folder, f"{path.name} cannot be opened: {error}") from None
    flat = np.frombuffer(mapping, dtype=info.dtype, offset=HEADER_BYTES)
    return flat.reshape(info.shape), mapping


class SkippedRow(NamedTuple):
    """A row of the source that gave no graph: its line (the header is line 1), what stood there, and why.

    Of a source that is not a text file, such as a list of SMILES, ``line`` is the number of the entry, from 0.
    """

    line: int
    content: str
    reason: str


def write_skipped(folder: Path, skipped: Sequence[SkippedRow]) -> None:
    """List the skipped rows in ``skipped.csv``; what a spreadsheet would run as a formula is `grit.files.spreadsheet.guarded`."""
    with (folder / SKIPPED).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(SkippedRow._fields)
        writer.writerows((each.line, guarded(each.content), guarded(each.reason)) for each in skipped)


def read_skipped(folder: Path) -> list[SkippedRow]:
    """The list that `write_skipped` wrote."""
    try:
        with check_ordinary(folder / SKIPPED).open(encoding="utf-8", newline="") as file:
            header, *found = csv.reader(file)
            # Stores of earlier versions list the number of the row, from 0.
            first = 2 if header[:1] == ["row"] else 0
            return [
                SkippedRow(int(line) + first, unguarded(content), unguarded(reason)) for line, content, reason in found
            ]
    except (OSError, ValueError, csv.Error) as error:
        raise damaged(folder, f"{SKIPPED} cannot be read: {error}") from None


def npy_header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """Header of a version 1.0 ``.npy`` file, padded to a fixed length."""
    text = f"{{'descr': {dtype.newbyteorder('<').str!r}, 'fortran_order': False, 'shape': {shape!r}, }}"
    body = text.ljust(HEADER_BYTES - 11) + "\n"
    return b"\x93NUMPY\x01\x00" + (HEADER_BYTES - 10).to_bytes(2, "little") + body.encode("latin1")


def smallest_integer(low: int, high: int) -> str:
    """The smallest integer type that holds both."""
    for name in _INTEGERS:
        info = np.iinfo(name)
        if info.min <= low and high <= info.max:
            return name
    raise GritError(f"no integer type holds {low} to {high}.")


def sha256_of(path: Path, *, skip: int = 0, progress: Callable[[int], None] | None = None) -> str:
    """SHA-256 of a file without its first ``skip`` bytes, read in blocks; ``progress`` is told how long each was."""
    digest = hashlib.sha256()
    with check_ordinary(path).open("rb") as file:
        file.seek(skip)
        while block := file.read(1 << 20):
            digest.update(block)
            if progress is not None:
                progress(len(block))
    return digest.hexdigest()


def damaged(folder: Path | None, what: str) -> GritError:
    """The error that says what is wrong with a store."""
    return GritError(f"the store {str(folder)!r} is damaged: {what}. Build it again.")


def _first_line(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(str(part) for part in first['loc']) or 'content'}: {first['msg']}"
    return str(error)
