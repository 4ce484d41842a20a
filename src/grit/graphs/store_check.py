"""Whether a store is what was built: what is checked when it is opened, and what ``verify`` checks.

Every opening checks, in a few milliseconds, the manifest's own checksum, the size and header of every file, that offsets rise
from zero to the end, that splits name existing graphs, and the checksums of small arrays.

All checksums are checked once after a store was built elsewhere, copied, or touched: ``verified.json`` remembers the inode, size
and time of change of each file as they were when they were last known to be sound, and any difference means that they are read
again. Damage that leaves those as they were, such as a failing disk, is found by `verify`, which reads everything.
"""

import hashlib
import json
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np

from grit.errors import GritError
from grit.files.ordinary_file import check_ordinary
from grit.files.whole_file import whole_file
from grit.graphs.chunk import Array, GraphChunk, check_chunk, check_divided, check_splits
from grit.graphs.schema import TaskSpec
from grit.graphs.store_format import HEADER_BYTES, MANIFEST, SKIPPED, Manifest, damaged, sha256_of

VERIFIED = "verified.json"
SMALL = 1 << 20  # bytes: the checksum of such an array takes a millisecond or two
GRAPHS_AT_ONCE = 1 << 16  # that verify holds in memory

CheckProgress = Callable[[str, int, int], None]
"""Called with what is being verified, how much of it was since the last call, and how much there is in all."""

Stamps = dict[str, list[int]]


def check_opened(folder: Path | None, manifest: Manifest, arrays: Mapping[str, Array]) -> None:
    """Raise unless the arrays fit together; ``folder`` is None for a store in memory."""
    _check_shapes(folder, manifest, arrays)
    for name, total in (("node_ptr", "x"), ("edge_ptr", "edge_index"), ("label_ptr", "label_index")):
        if name in arrays:
            pointer = arrays[name]
            if int(pointer[0]) != 0 or int(pointer[-1]) != len(arrays[total]) or (pointer[1:] < pointer[:-1]).any():
                raise damaged(folder, f"{name} does not rise from 0 to {len(arrays[total])}, the length of {total}")
    graphs = arrays["node_ptr"].size - 1
    for name, members in arrays.items():
        if name.startswith("split_") and members.size and not 0 <= int(members.min()) <= int(members.max()) < graphs:
            raise damaged(folder, f"{name} names graphs outside 0..{graphs - 1}")
    for name, info in manifest.arrays.items():
        if arrays[name].nbytes <= SMALL and hashlib.sha256(arrays[name].tobytes()).hexdigest() != info.sha256:
            raise damaged(folder, f"{name}.npy has changed since the store was built")


def _check_shapes(folder: Path | None, manifest: Manifest, arrays: Mapping[str, Array]) -> None:
    schema, graphs = manifest.graphs, arrays["node_ptr"].size - 1
    rows = {"graph": graphs, "node": len(arrays["x"]), "edge": len(arrays.get("label_index", ()))}[schema.level]
    known = ("row", "node_ptr", "edge_ptr", "label_ptr", "node_split")
    vectors = [name for name in arrays if name in known or name[:6] == "split_"]
    pairs = [name for name in ("edge_index", "label_index") if name in arrays]
    consistent = (
        graphs >= 1
        and all(arrays[name].ndim == 1 for name in vectors)
        and all(arrays[name].ndim == 2 and arrays[name].shape[1] == 2 for name in pairs)
        and all(arrays[name].dtype.kind in "iu" for name in (*vectors, *pairs))
        and all(arrays[name].size == graphs + 1 for name in vectors if name.endswith("_ptr"))
        and arrays["row"].size == graphs
        and ("node_split" not in arrays or (schema.level == "node" and arrays["node_split"].size == rows))
        and all(arrays[name].ndim == 2 for name in ("x", "edge_attr", "y"))
        and len(arrays["edge_attr"]) == len(arrays["edge_index"])
        and len(arrays["y"]) == rows
        and all(
            arrays[name].shape[1] == features.width and (arrays[name].dtype.kind in "iu" or not features.is_integer)
            for name, features in (("x", schema.node), ("edge_attr", schema.edge))
        )
        and ("graph_attr" in arrays) == (schema.graph_features > 0)
        and ("graph_attr" not in arrays or arrays["graph_attr"].shape == (graphs, schema.graph_features))
        and ("graph_weight" not in arrays or (schema.level == "graph" and arrays["graph_weight"].shape == (graphs, 1)))
    )
    if not consistent:
        raise damaged(folder, "its arrays do not fit together")


def stamps_of(folder: Path, manifest: Manifest) -> Stamps:
    """Inode, size and time of change of each file."""
    stamps = {}
    for name in _files(manifest):
        with suppress(OSError):  # whoever reads the file will say that it is not there
            found = (folder / name).stat()
            stamps[name] = [found.st_ino, found.st_size, found.st_mtime_ns]
    return stamps


def remember(folder: Path, stamps: Stamps) -> bool:
    """Note that the files with these stamps are sound; False if the folder cannot be written."""
    try:
        with whole_file(folder / VERIFIED) as file:
            file.write(json.dumps(stamps).encode())
    except OSError:
        return False
    return True


def _remembered(folder: Path) -> object:
    try:
        return json.loads(check_ordinary(folder / VERIFIED).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None


def verify_if_changed(folder: Path, manifest: Manifest, known: Stamps | None = None) -> Stamps:
    """Check all checksums, unless the files are those that were sound before; their stamps.

    Args:
        folder: Of the store.
        manifest: Of the store.
        known: Stamps that the caller knows to be those of sound files.
    """
    stamps = stamps_of(folder, manifest)
    if stamps not in (known, _remembered(folder)):
        print(
            f"grit: verifying the store {str(folder)!r} ({sum(stamp[1] for stamp in stamps.values()) / 1e6:,.1f} MB), "
            "which is new here, or was copied or touched",
            file=sys.stderr,
            flush=True,
        )
        verify_checksums(folder, manifest)
        if not remember(folder, stamps):
            print(
                "grit: the folder cannot be written, so every opening does this again; 'grit datasets verify' by someone "
                "who can write there ends that",
                file=sys.stderr,
                flush=True,
            )
    return stamps


def verify_checksums(folder: Path, manifest: Manifest, progress: CheckProgress | None = None) -> None:
    """Read every file and compare it with its checksum."""
    skip = {name: 0 if name == SKIPPED else HEADER_BYTES for name in _files(manifest)}
    checked = {name: wanted for name, wanted in _files(manifest).items() if wanted is not None}
    sizes = {name: stamp[1] - skip[name] for name, stamp in stamps_of(folder, manifest).items() if name in checked}
    total, changed = sum(sizes.values()), []
    for name, wanted in checked.items():
        try:
            told = None if progress is None else lambda done: progress("checksums", done, total)
            got = sha256_of(folder / name, skip=skip[name], progress=told)
        except OSError as error:
            raise damaged(folder, f"{name} cannot be read: {error}") from None
        if got != wanted:
            changed.append(name)
    if changed:
        verb = "has" if len(changed) == 1 else "have"
        raise damaged(folder, f"{', '.join(changed)} {verb} changed since the store was built")


def _files(manifest: Manifest) -> dict[str, str | None]:
    """The files of a store with their checksums; that of the manifest is inside it and checked whenever it is read."""
    arrays = {f"{name}.npy": info.sha256 for name, info in manifest.arrays.items()}
    return {MANIFEST: None, SKIPPED: manifest.skipped_sha256, **arrays}


def verify_content(
    folder: Path, manifest: Manifest, arrays: Mapping[str, Array], progress: CheckProgress | None = None
) -> None:
    """Raise unless all graphs, targets and splits are what the manifest says."""
    graphs = arrays["node_ptr"].size - 1
    try:
        for start in range(0, graphs, GRAPHS_AT_ONCE):
            chunk = _chunk(manifest, arrays, start, min(start + GRAPHS_AT_ONCE, graphs))
            check_chunk(chunk, manifest.graphs, first=start)
            check_targets(chunk.y, manifest.task)
            if progress is not None:
                progress("graphs", len(chunk), graphs)
        splits = {name.removeprefix("split_"): each for name, each in arrays.items() if name.startswith("split_")}
        if "node_split" in arrays:
            check_divided(splits, arrays["node_split"], np.diff(arrays["node_ptr"].astype(np.int64)))
        else:
            check_splits(splits, graphs)
    except GritError as error:
        raise damaged(folder, str(error).removesuffix(".")) from None


def _chunk(manifest: Manifest, arrays: Mapping[str, Array], start: int, stop: int) -> GraphChunk:
    """Graphs ``start`` to ``stop`` as they stand in the files."""

    def rows(pointer: str) -> tuple[slice, Array]:
        offsets = arrays[pointer][start : stop + 1].astype(np.int64)
        return slice(int(offsets[0]), int(offsets[-1])), np.diff(offsets)

    nodes, num_nodes = rows("node_ptr")
    edges, num_edges = rows("edge_ptr")
    labels, num_labels = rows("label_ptr") if manifest.graphs.level == "edge" else (slice(0), None)
    targets = {"graph": slice(start, stop), "node": nodes, "edge": labels}[manifest.graphs.level]
    return GraphChunk(
        num_nodes=num_nodes,
        num_edges=num_edges,
        x=arrays["x"][nodes],
        edge_index=arrays["edge_index"][edges].T,
        edge_attr=arrays["edge_attr"][edges],
        y=arrays["y"][targets],
        num_labels=num_labels,
        label_index=None if num_labels is None else arrays["label_index"][labels].T,
        node_split=arrays["node_split"][nodes] if "node_split" in arrays else None,
        graph_attr=arrays["graph_attr"][start:stop] if "graph_attr" in arrays else None,
        graph_weight=arrays["graph_weight"][start:stop, 0] if "graph_weight" in arrays else None,
    )


def check_targets(y: Array, task: TaskSpec) -> None:
    """Blanks (NaN) are unknown; all else is finite, and a class where there are classes."""
    if y.shape[1] != len(task.targets):
        raise GritError(f"y has {y.shape[1]} columns, expected {len(task.targets)}: {', '.join(task.targets)}.")
    known = y[~np.isnan(y)]
    if not np.isfinite(known).all():
        raise GritError("a target is infinite.")
    if task.kind == "mixed":
        for part in task.by_target():
            check_targets(y[:, [part.column]], part.spec)
    elif task.kind != "regression":
        classes = len(task.classes) or 2
        wrong = (known < 0) | (known >= classes) | (known != np.floor(known))
        if wrong.any():
            raise GritError(f"a target is {known[wrong][0]}, expected a class: 0 to {classes - 1}.")
