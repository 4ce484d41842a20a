"""Archives, pickles and arrays from elsewhere with damaged bytes: their content, or a message; nothing outside the folder."""

import functools
import io
import pickle
import tarfile
import tempfile
import zipfile
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch

from grit.datasets.pipeline.source_files import extract, read_member, read_npz, read_tensors, unpickle
from tests.fuzz.mutation import damaged

OUTSIDE = f"{tempfile.gettempdir()}/grit-fuzz-escaped"
NAMES = ["a.txt", "b/c.txt", "../x", OUTSIDE, "b/../../x", "a" * 300, "\udcff", "", ".", "b", "a.txt/d"]


@functools.cache
def _samples() -> dict[str, bytes]:
    arrays = {"x": np.arange(20).reshape(4, 5), "y": np.ones(3, dtype=np.float32)}
    npz, saved = io.BytesIO(), io.BytesIO()
    np.savez_compressed(npz, **arrays)
    torch.save({"x": torch.arange(5), "y": [1, 2.0, "z"]}, saved)
    return {
        "pickle": pickle.dumps([arrays, {"t": (1, 2.5, "x")}], protocol=4),
        "npz": npz.getvalue(),
        "tensors": saved.getvalue(),
    }


def _archive(rng: Random, kind: str) -> bytes:
    buffer = io.BytesIO()
    names = [rng.choice(NAMES[:2]), rng.choice(NAMES)]
    if kind == "zip":
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as zipped:
            for name in dict.fromkeys(names):
                zipped.writestr(zipfile.ZipInfo(name.encode("utf-8", "replace").decode() or "e"), b"content")
    else:
        with tarfile.open(fileobj=buffer, mode=rng.choice(["w", "w:gz"])) as tarred:
            for name in names:
                entry = tarfile.TarInfo(name)
                entry.type = rng.choice(
                    [tarfile.REGTYPE] * 4 + [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE]
                )
                entry.linkname = rng.choice(NAMES)
                entry.size = 7 if entry.type == tarfile.REGTYPE else 0
                tarred.addfile(entry, io.BytesIO(b"content") if entry.size else None)
    return buffer.getvalue()


def make_input(rng: Random) -> dict[str, Any]:
    """The bytes, and how they are read."""
    kind = rng.choice(["zip", "tar", "zip", "tar", "pickle", "npz", "tensors"])
    content = _archive(rng, kind) if kind in ("zip", "tar") else _samples()[kind]
    return {"kind": kind, "content": damaged(rng, content) if rng.random() < 0.7 else content}


def try_it(value: dict[str, Any], folder: Path) -> None:
    """Read it."""
    inside = folder / "outer" / "inner"
    inside.mkdir(parents=True)
    path = folder / "archive"
    path.write_bytes(value["content"])
    match value["kind"]:
        case "pickle":
            unpickle(value["content"], "here")
        case "npz":
            read_npz(path, ["x", "y"])
        case "tensors":
            read_tensors(value["content"], "here")
        case _:
            try:
                extract(path, inside)
            finally:
                assert [each.name for each in (folder / "outer").iterdir()] == ["inner"], "a member landed outside"
                assert not Path(OUTSIDE).exists(), "a member landed outside"
                assert sorted(each.name for each in folder.iterdir()) == ["archive", "outer"], "a member landed outside"
                assert not any(each.is_symlink() for each in inside.rglob("*")), "a link was made"
            read_member(path, "a.txt")
