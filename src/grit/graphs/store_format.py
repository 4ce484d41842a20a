"""The files of a graph store: a folder of NumPy arrays and a manifest that describes them.

Arrays are ordinary ``.npy`` files with a header of fixed length, so that a reader need not parse what it is given: it
compares the header with the one that the manifest implies. Integers have the smallest type that fits.

    x           (N, F)   node features            node_ptr   (B + 1,)   first node of each graph
    edge_index  (E, 2)   source, target in graph  edge_ptr   (B + 1,)   first edge of each graph
    edge_attr   (E, F)   edge features            y          (R, T)     targets, R = B, N or Q
    label_index (Q, 2), label_ptr (B + 1,)        labelled pairs, for edge-level targets only
    row         (B,)     row of the source that each graph came from
    split_NAME  (S,)     numbers of the graphs in a split
"""

import csv
import hashlib
import mmap
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from grit.errors import GritError
from grit.graphs.chunk import Array
from grit.graphs.schema import GraphSchema, TaskSpec
from grit.spreadsheet import guarded, unguarded

FORMAT_VERSION = 1
MANIFEST = "manifest.json"
SKIPPED = "skipped.csv"
REQUIRED = ("x", "edge_index", "edge_attr", "node_ptr", "edge_ptr", "y", "row")
EDGE_LEVEL = ("label_index", "label_ptr")
_HEADER_BYTES = 128
_INTEGERS = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "int64")

Dtype = Literal["uint8", "int8", "uint16", "int16", "uint32", "int32", "int64", "float32"]


class ArrayInfo(BaseModel):
    """Type, shape and SHA-256 of the numbers in one array file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    dtype: Dtype
    shape: tuple[int, ...]
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
        molecules: How a SMILES becomes such a graph (`grit.datasets.featurisers`); None if the graphs are no molecules.
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


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a store; an error if there is none, or it is damaged, or newer than this version reads."""
    path = folder / MANIFEST
    if not path.is_file():
        raise GritError(f"{str(folder)!r} is not a graph store: it has no {MANIFEST}.")
    try:
        text = path.read_text(encoding="utf-8")
        version = _version(text)
        if version is not None and version > FORMAT_VERSION:
            raise GritError(
                f"the store {str(folder)!r} has format version {version}, this grit reads up to {FORMAT_VERSION}. "
                "Update grit, or build the store again."
            )
        return Manifest.model_validate_json(text)
    except (OSError, UnicodeDecodeError, ValidationError) as error:
        raise _damaged(folder, f"{MANIFEST} cannot be read: {_first_line(error)}") from None


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
    size = _HEADER_BYTES + int(np.prod(info.shape, dtype=np.float64)) * np.dtype(info.dtype).itemsize
    try:
        with path.open("rb") as file:
            actual = path.stat().st_size
            if actual != size:
                raise _damaged(folder, f"{path.name} has {actual:,} bytes, expected {size:,}")
            if file.read(_HEADER_BYTES) != wanted:
                raise _damaged(folder, f"the header of {path.name} does not agree with {MANIFEST}")
            if size == _HEADER_BYTES:
                return np.zeros(info.shape, dtype=info.dtype), None
            mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise _damaged(folder, f"{path.name} cannot be opened: {error}") from None
    flat = np.frombuffer(mapping, dtype=info.dtype, offset=_HEADER_BYTES)
    return flat.reshape(info.shape), mapping


class SkippedRow(NamedTuple):
    """A row of the source that gave no graph: its line (the header is line 1), what stood there, and why.

    Of a source that is no text file, such as a list of SMILES, ``line`` is the number of the entry, from 0.
    """

    line: int
    content: str
    reason: str


def write_skipped(folder: Path, skipped: Sequence[SkippedRow]) -> None:
    """List the skipped rows in ``skipped.csv``; what a spreadsheet would run as a formula is `grit.spreadsheet.guarded`."""
    with (folder / SKIPPED).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(SkippedRow._fields)
        writer.writerows((each.line, guarded(each.content), guarded(each.reason)) for each in skipped)


def read_skipped(folder: Path) -> list[SkippedRow]:
    """The list that `write_skipped` wrote."""
    try:
        with (folder / SKIPPED).open(encoding="utf-8", newline="") as file:
            header, *found = csv.reader(file)
            # Stores of earlier versions list the number of the row, from 0.
            first = 2 if header[:1] == ["row"] else 0
            return [
                SkippedRow(int(line) + first, unguarded(content), unguarded(reason)) for line, content, reason in found
            ]
    except (OSError, ValueError, csv.Error) as error:
        raise _damaged(folder, f"{SKIPPED} cannot be read: {error}") from None


def npy_header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """Header of a version 1.0 ``.npy`` file, padded to a fixed length."""
    text = f"{{'descr': {dtype.newbyteorder('<').str!r}, 'fortran_order': False, 'shape': {shape!r}, }}"
    body = text.ljust(_HEADER_BYTES - 11) + "\n"
    return b"\x93NUMPY\x01\x00" + (_HEADER_BYTES - 10).to_bytes(2, "little") + body.encode("latin1")


def smallest_integer(low: int, high: int) -> str:
    """The smallest integer type that holds both."""
    for name in _INTEGERS:
        info = np.iinfo(name)
        if info.min <= low and high <= info.max:
            return name
    raise GritError(f"no integer type holds {low} to {high}.")


def sha256_of(path: Path) -> str:
    """SHA-256 of the numbers in an array file, the header left out."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        file.seek(_HEADER_BYTES)
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _damaged(folder: Path, what: str) -> GritError:
    return GritError(f"the store {str(folder)!r} is damaged: {what}. Build it again.")


def _first_line(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(str(part) for part in first['loc']) or 'content'}: {first['msg']}"
    return str(error)
