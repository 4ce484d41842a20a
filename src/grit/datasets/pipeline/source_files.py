"""Files from elsewhere: where they are kept, checksums, archives, and pickles; `grit.datasets.pipeline.download` fetches them.

Archives are extracted without following paths outside the target. A pickle is read only after its checksum matched, by an
unpickler that knows arrays and tensors and nothing else.
"""

import gzip
import hashlib
import io
import os
import pickle
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from grit.errors import GritError
from grit.files.cache_folder import user_cache
from grit.graphs.chunk import Array


def data_root(root: str | Path | None = None) -> Path:
    """The folder that holds downloads and stores: the one given, else ``$GRIT_DATA``, else the user's cache folder."""
    if root is not None:
        return Path(root)
    if named := os.environ.get("GRIT_DATA"):
        return Path(os.path.expanduser(named))
    cache = user_cache()
    if cache is None:
        raise GritError(
            "there is no folder for data sets, because this user has no home folder. Name one with --root, or in the "
            "environment variable GRIT_DATA."
        )
    return cache / "grit"


@dataclass(frozen=True)
class SourceFile:
    """One official file.

    Attributes:
        name: As it is called on disk.
        url: Its official address; None if it has none.
        md5: Published MD5 sum, if there is one.
        sha256: SHA-256, if it is known.
    """

    name: str
    url: str | None = None
    md5: str | None = None
    sha256: str | None = None

    def verify(self, path: Path, shown: str | None = None) -> None:
        """Compare a file with the known checksum; where there is none, an archive must at least be one.

        Args:
            path: The file.
            shown: What it is called in an error; if not given its path, and what to do with it.
        """
        what, advice = (repr(str(path)), " Delete it and download it again.") if shown is None else (shown, "")
        for kind, wanted in (("sha256", self.sha256), ("md5", self.md5)):
            if wanted is not None:
                got = checksum(path, kind)
                if got != wanted:
                    raise GritError(
                        f"{what} is not the official {self.name}: its {kind} is {got}, expected {wanted}.{advice}"
                    )
                return
        try:
            if self.name.endswith(".zip") and not zipfile.is_zipfile(path):
                raise GritError(f"{what} is not a .zip file, or not all of it.{advice}")
            if self.name.endswith(".gz"):
                with gzip.open(path) as packed:
                    while packed.read(1 << 20):
                        pass
        except (OSError, EOFError, zlib.error) as error:
            raise GritError(f"{what} is not a .gz file, or not all of it: {error}.{advice}") from None

    @property
    def has_checksum(self) -> bool:
        """Whether `verify` can tell the file from another."""
        return self.md5 is not None or self.sha256 is not None


def checksum(path: Path, kind: str) -> str:
    """Checksum of a file, read in blocks."""
    digest = hashlib.new(kind)
    try:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    except OSError as error:
        raise GritError(f"cannot read {str(path)!r}: {error}") from None
    return digest.hexdigest()


def read_member(archive: Path, name: str) -> bytes:
    """One member of a ``.zip`` or ``.tar.gz`` by the end of its path, without extracting anything to disk."""
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as zipped:
                for member in zipped.namelist():
                    if member == name or member.endswith(f"/{name}"):
                        return zipped.read(member)
        else:
            with tarfile.open(archive) as tarred:
                for entry in tarred:
                    if entry.isfile() and (entry.name == name or entry.name.endswith(f"/{name}")):
                        stream = tarred.extractfile(entry)
                        if stream is not None:
                            return stream.read()
    except (*_DAMAGE, tarfile.TarError) as error:
        raise GritError(f"cannot read the archive {str(archive)!r}: {error}") from None
    raise GritError(f"the archive {str(archive)!r} has no {name}.")


def extract(archive: Path, folder: Path) -> None:
    """Unpack a ``.zip`` or ``.tar.gz``; a member that would land outside ``folder``, or a link, is refused."""
    target = folder.resolve()
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as zipped:
                for name in zipped.namelist():
                    _inside(target, name, archive)
                zipped.extractall(target)
        else:
            with tarfile.open(archive) as tarred:
                for entry in tarred:
                    _inside(target, entry.name, archive)
                    if not (entry.isfile() or entry.isdir()):
                        raise GritError(
                            f"the archive {str(archive)!r} holds {entry.name!r}, which is not an ordinary file."
                        )
                tarred.extractall(target, filter="data")
    except GritError:
        raise
    except (*_DAMAGE, tarfile.TarError) as error:
        raise GritError(f"cannot read the archive {str(archive)!r}: {error}") from None


def _inside(target: Path, name: str, archive: Path) -> None:
    if not (target / name).resolve().is_relative_to(target):
        raise GritError(f"the archive {str(archive)!r} holds {name!r}, which would land outside its folder.")


def read_pickle(path: Path, file: SourceFile) -> Any:
    """The content of an official pickle of arrays, tensors, lists and dicts, whose checksum is known and matches."""
    if not file.has_checksum:
        raise GritError(f"{file.name} is a pickle and no checksum of it is known; it is not read.")
    file.verify(path)
    return unpickle(path.read_bytes(), str(path))


def unpickle(data: bytes, where: str) -> Any:
    """Read a pickle that holds nothing but arrays, tensors, lists, dicts and plain values."""
    try:
        return _ArraysOnly(io.BytesIO(data)).load()
    except (*_DAMAGE, ImportError) as error:
        raise GritError(f"{where!r} cannot be read as a pickle of arrays: {error}") from None


# What the readers of NumPy and torch raise on damaged files: neither has an error type of its own.
_DAMAGE = (
    OSError,
    EOFError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    AssertionError,
    ArithmeticError,
    RuntimeError,
    MemoryError,
    SyntaxError,
    struct.error,
    zlib.error,
    zipfile.BadZipFile,
    pickle.UnpicklingError,
)


def read_npz(path: Path, names: Sequence[str]) -> dict[str, Array]:
    """Arrays of an ``.npz`` file; pickled objects in it are refused."""
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
            return {name: file[name] for name in names}
    except _DAMAGE as error:
        raise GritError(f"cannot read {', '.join(names)} from {str(path)!r}: {error}") from None


def read_tensors(data: bytes, where: str, allowed: Sequence[Any] = ()) -> Any:
    """What ``torch.save`` wrote: tensors, lists, dicts and plain values, and the types in ``allowed``."""
    import torch

    try:
        with torch.serialization.safe_globals(list(allowed)):
            return torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except _DAMAGE as error:
        raise GritError(f"cannot read {where}: {error}") from None


_ALLOWED = {
    "builtins": {"list", "dict", "tuple", "set", "int", "float", "str", "bool", "complex"},
    "_codecs": {"encode"},  # how older pickles write bytes
    "collections": {"OrderedDict"},
    "numpy": {"ndarray", "dtype"},
    "numpy.core.multiarray": {"_reconstruct", "scalar"},
    "numpy._core.multiarray": {"_reconstruct", "scalar"},
    "torch._utils": {"_rebuild_tensor_v2", "_rebuild_tensor"},
    "torch.storage": {"_load_from_bytes"},
}


class _ArraysOnly(pickle.Unpickler):
    """Unpickler that finds array and tensor constructors, and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        if name not in _ALLOWED.get(module, ()):
            raise pickle.UnpicklingError(f"it names {module}.{name}, which is neither array nor tensor")
        if name == "_load_from_bytes":
            return _storage
        return super().find_class(module.replace("numpy.core", "numpy._core"), name)


def _storage(data: bytes) -> Any:
    """A tensor's numbers inside a pickle; torch's own reader would run any code in it."""
    import torch

    return torch.load(io.BytesIO(data), weights_only=True)
