"""Damage for graph stores, by a seed: flipped bits, cut and swapped files, edited manifests.

`damage` changes a store, and says how. A quiet change leaves inode and times of the files as they were, as a failing disk does.
"""

import json
import os
import random
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from grit.batches.pair_batch import PairBatch
from grit.batches.spec import BatchSpec
from grit.graphs.chunk import NODE_SPLITS, ArrayGraph, GraphChunk
from grit.graphs.schema import Features, GraphSchema, TaskSpec
from grit.graphs.store import GraphStore
from grit.graphs.store_format import MANIFEST, SkippedRow
from grit.graphs.store_writer import StoreWriter


def sample_store(path: Path, level: str, count: int = 30) -> GraphStore:
    """Categories and targets of graphs, ``described`` with numbers and weights of their own; numbers and labelled pairs of
    nodes; or numbers and nodes in different splits."""
    is_described, level = level == "described", "graph" if level == "described" else level
    rng = np.random.default_rng(5)
    if level == "graph":
        node, edge = Features(kind="category", sizes=(5,)), Features(kind="columns", sizes=(3, 4))
        task = TaskSpec(kind="regression", targets=("u", "v"), loss="l1", metric="mae")
    else:
        node, edge = Features(kind="numeric", sizes=(2,)), Features(kind="none")
        task = TaskSpec(kind="binary", targets=("joined",), classes=("no", "yes"), loss="cross_entropy", metric="auroc")
    schema = GraphSchema(
        node=node, edge=edge, level=level, num_outputs=len(task.targets), graph_features=3 if is_described else 0
    )
    with StoreWriter(path, name="toy", graphs=schema, task=task, source="here") as writer:
        for _ in range(count):
            chunk = _chunk(rng, level)
            writer.append(_described(rng, chunk) if is_described else chunk)
        splits = {"train": np.arange(count - 5), "val": np.arange(count - 5, count)}
        if level == "node":
            splits = {split: np.arange(count) for split in NODE_SPLITS}
        writer.finish(splits, rows=count + 1, skipped=[SkippedRow(count, "C1", "ring is open")])
    return GraphStore.open(path)


def _chunk(rng: np.random.Generator, level: str) -> GraphChunk:
    n = int(rng.integers(3 if level == "node" else 1, 9))
    edges = rng.integers(0, n, (2, 2 * n))
    if level == "graph":
        x, attr = rng.integers(0, 5, (n, 1)), rng.integers(0, 3, (2 * n, 2))
        return GraphChunk.of([ArrayGraph(x=x, edge_index=edges, edge_attr=attr, y=rng.normal(size=(1, 2)))])
    chunk = GraphChunk(
        num_nodes=np.array([n]),
        num_edges=np.array([2 * n]),
        x=rng.normal(size=(n, 2)).astype(np.float32),
        edge_index=edges,
        edge_attr=np.zeros((2 * n, 0), np.float32),
        y=rng.integers(0, 2, (n if level == "node" else 3, 1)),
    )
    if level == "node":
        return replace(chunk, node_split=np.roll(np.arange(n) % 3 + 1, 1))
    return replace(chunk, num_labels=np.array([3]), label_index=rng.integers(0, n, (2, 3)))


def _described(rng: np.random.Generator, chunk: GraphChunk) -> GraphChunk:
    numbers = np.where(rng.random((1, 3)) < 0.2, np.nan, rng.normal(size=(1, 3)))
    return replace(chunk, graph_attr=numbers, graph_weight=rng.random(1))


def content(store: GraphStore) -> tuple[Any, ...]:
    """All that a user can get out of a store."""
    arrays = {name: (store.array(name).dtype.str, store.array(name).tolist()) for name in sorted(store.manifest.arrays)}
    batch = PairBatch.from_store(store, range(len(store)), BatchSpec(3))
    tensors = (batch.graphs.x, batch.graphs.edge_index, batch.graphs.edge_attr, batch.y, batch.pair_encoding)
    numbers = (batch.graphs.graph_attr, batch.graphs.graph_weight)
    own = [str(values.tolist()) for values in numbers if values is not None]  # NaN is not equal to itself, its text is
    return store.manifest, str(arrays), store.skipped, [tensor.tolist() for tensor in tensors], own


def damage(folder: Path, seed: int, *, quiet: bool) -> str:
    """Damage a store."""
    rng = random.Random(seed)
    files = sorted(path for path in folder.iterdir() if path.name != "verified.json")
    times = {path: path.stat() for path in files}
    kind = KINDS[seed % len(KINDS)]
    what = f"{kind.__name__.strip('_')}: {kind(rng, files)}"
    if quiet:
        for path in files:
            if path.exists():
                os.utime(path, ns=(times[path].st_atime_ns, times[path].st_mtime_ns))
    return what


def _write(path: Path, data: bytes) -> str:
    with path.open("r+b") as file:  # in place: the inode stays
        file.write(data)
        file.truncate()
    return path.name


def _flipped_bits(rng: random.Random, files: list[Path]) -> str:
    path = rng.choice(files)
    data = bytearray(path.read_bytes())
    for _ in range(rng.choice([1, 1, 2, 8])):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return _write(path, bytes(data))


def one_number(rng: random.Random, files: list[Path]) -> str:
    """A byte of the numbers, not of the header."""
    path = rng.choice([path for path in files if path.suffix == ".npy" and path.stat().st_size > 128])
    data = bytearray(path.read_bytes())
    place = rng.randrange(128, len(data))
    data[place] = (data[place] + rng.choice([1, 2, 255])) % 256
    return _write(path, bytes(data))


def _truncated(rng: random.Random, files: list[Path]) -> str:
    path = rng.choice(files)
    data = path.read_bytes()
    return _write(path, data[: rng.choice([0, 1, len(data) // 2, len(data) - 1])])


def _extended(rng: random.Random, files: list[Path]) -> str:
    path = rng.choice(files)
    return _write(path, path.read_bytes() + rng.choice([b"\0", b"\n", rng.randbytes(100)]))


def _swapped(rng: random.Random, files: list[Path]) -> str:
    one, other = rng.sample(files, 2)
    first, second = one.read_bytes(), other.read_bytes()
    return f"{_write(one, second)}, {_write(other, first)}"


def _swapped_numbers(rng: random.Random, files: list[Path]) -> str:
    """As much of the numbers of one array as fits, in place of those of another, whose header stays."""
    one, other = rng.sample([path for path in files if path.suffix == ".npy" and path.stat().st_size > 128], 2)
    data, foreign = one.read_bytes(), other.read_bytes()[128:]
    return _write(one, data[:128] + (foreign * (len(data) // len(foreign) + 1))[: len(data) - 128])


def _zeroed(rng: random.Random, files: list[Path]) -> str:
    path = rng.choice(files)
    data = bytearray(path.read_bytes())
    begin = rng.choice([0, 128, rng.randrange(len(data))]) % len(data)
    end = min(len(data), begin + rng.choice([1, 16, 512, 4096]))
    data[begin:end] = bytes(end - begin)
    return _write(path, bytes(data))


def _header(rng: random.Random, files: list[Path]) -> str:
    path = rng.choice([path for path in files if path.suffix == ".npy"])
    head, numbers = path.read_bytes()[:128], path.read_bytes()[128:]
    for old, new in rng.sample(
        [(b"|u1", b"|i1"), (b"<f4", b"<i4"), (b"<u2", b"<i2"), (b"False", b"True "), (b"(", b"[")], 5
    ):
        if old in head:
            head = head.replace(old, new, 1)
            break
    return _write(path, head + numbers)


def _deleted(rng: random.Random, files: list[Path]) -> str:
    path = rng.choice(files)
    path.unlink()
    return path.name


def _other_file(rng: random.Random, files: list[Path]) -> str:
    """A file in place of another, as a new inode."""
    one, other = rng.sample(files, 2)
    one.unlink()
    shutil.copy(other, one)
    return f"{one.name} is {other.name}"


def _manifest(rng: random.Random, files: list[Path]) -> str:
    """A value somewhere in the manifest."""
    path = next(path for path in files if path.name == MANIFEST)
    tree = json.loads(path.read_text())
    leaves: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        for key in node if isinstance(node, dict) else range(len(node)):
            leaves.append((node, key))
            if isinstance(node[key], dict | list):
                walk(node[key])

    walk(tree)
    node, key = rng.choice(leaves)
    value = node[key]
    changes: list[Any] = [None, "", 0, -1, [], {}]
    if isinstance(value, bool):
        changes.append(not value)
    elif isinstance(value, int):
        changes += [value + 1, value - 1, 2 * value, 10**18]
    elif isinstance(value, str):
        changes += [value + "x", value[::-1], "int64", "rmse"]
    elif isinstance(value, list):
        changes += [value[::-1], value[:-1], value * 2]
    if rng.random() < 0.15:
        del node[key]
    else:
        node[key] = rng.choice(changes)
    _write(path, json.dumps(tree, indent=1).encode())
    return str(key)


KINDS = (
    _flipped_bits,
    one_number,
    _manifest,
    _truncated,
    _zeroed,
    one_number,
    _extended,
    _swapped,
    _header,
    _swapped_numbers,
    _deleted,
    _other_file,
)
