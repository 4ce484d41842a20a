"""Where a store is built, and how it gets to its place: what a kill can leave, and how the next build or opening mends it.

A store ``data/zinc`` is built beside its place, in ``data/.zinc.building-TOKEN``. The builder locks a file in that folder (NFS
locks no folders). The system releases it when the process dies, so that nobody takes a running build for an abandoned one,
whatever its process number and whichever container it runs in.

    lock             what the builder holds
    store/           the new store: all of it is on disk before the first rename
    replaced/        the old store, from the first rename to the third
    removed-TOKEN/   the old store while it is removed; nobody puts it back

What a kill can leave:

    while it is written                 the old store in its place, if there was one; store/ is incomplete
    between the two renames             nothing in its place; store/ and replaced/ are both complete
    between the second and the third    the new store in its place; replaced/ is complete
    after the third rename              the new store in its place; removed-TOKEN/ is being removed

Whoever comes next and gets the lock puts ``replaced/`` back if nothing is in its place, and removes the folder: every build
does that, and opening does it where there is no store. So the old or the new store is always there, and whole.
"""

import errno
import hashlib
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from filelock import FileLock

from grit.errors import GritError
from grit.files.whole_file import sync_folder
from grit.graphs.store_format import MANIFEST

_LONGEST = 100  # bytes of a name that go into the hidden name as they are: names may have 255
_LOCK = "lock"


def is_there(path: Path) -> bool:
    """Whether there is something at ``path``, once what a killed build moved away has been put back."""
    for _ in range(250):  # five seconds: another build takes microseconds from one rename to the next
        if os.path.exists(path):
            return True
        tidy(path)
        aside = [folder / "replaced" for folder in _building_folders(path) if (folder / "replaced").exists()]
        if not aside:
            return os.path.exists(path)
        time.sleep(0.02)
    raise GritError(
        f"{str(path)!r} is missing: a build moved it to {str(aside[0])!r} and did not end. If no build is running, move it back."
    )


def tidy(path: Path) -> None:
    """Put back the store that a killed build moved away from ``path``, and remove what killed builds left."""
    for folder in _building_folders(path):
        held = _hold(folder)
        if held is not None:
            try:
                _clear(folder, path)
            finally:
                _let_go(folder, held)


def _clear(folder: Path, path: Path) -> None:
    """What `tidy` does with one folder, whose lock the caller holds."""
    with suppress(OSError):  # there is a store in its place, or none was moved away
        os.rename(folder / "replaced", path)
    if os.path.lexists(path):
        _discard(folder)
    if not os.path.lexists(folder / "replaced"):
        shutil.rmtree(folder, ignore_errors=True)


def _discard(folder: Path) -> None:
    """Remove the old store, under a name from which nobody puts back what a kill leaves of it."""
    removed = folder / f"removed-{secrets.token_hex(4)}"
    with suppress(OSError):  # there is none
        os.rename(folder / "replaced", removed)
        shutil.rmtree(removed, ignore_errors=True)


class BuildingFolder:
    """The hidden folder of a build, locked. ``store`` is where the files of the new store go.

    Args:
        path: Where the store will be.
        overwrite: Whether a store that is there is replaced.
    """

    def __init__(self, path: Path, *, overwrite: bool) -> None:
        self.path, self.overwrite = path, overwrite
        is_there(path)
        self._check_free()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            tidy(path)
            self._folder, self._held = _locked_folder(path)
            self.store = self._folder / "store"
            try:
                self.store.mkdir()
            except OSError:
                self.close()
                raise
        except OSError as error:
            raise GritError(f"cannot write the store {str(path)!r}: {error}") from None

    def put_in_place(self) -> None:
        """Sync the folder and rename it to its place."""
        sync_folder(self.store)
        while True:
            try:
                os.rename(self.store, self.path)
                break
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                    raise
            self._check_free()  # another build may have been quicker
            _discard(self._folder)
            with suppress(FileNotFoundError):
                os.rename(self.path, self._folder / "replaced")
        sync_folder(self.path.parent)
        _discard(self._folder)

    def close(self) -> None:
        """Remove what is not in its place; put the old store back if the new one did not get there."""
        _clear(self._folder, self.path)
        if self._held is not None:
            _let_go(self._folder, self._held)
            self._held = None

    def _check_free(self) -> None:
        try:
            os.lstat(self.path)
        except FileNotFoundError:
            return
        except OSError as error:  # a name that is too long, for example: better said before a long build than after it
            raise GritError(f"cannot write the store {str(self.path)!r}: {error}") from None
        if not self.overwrite:
            raise GritError(f"{str(self.path)!r} exists already. Choose another place, or say to overwrite it.")
        try:
            is_store = any(os.path.exists(self.path / name) for name in (MANIFEST, "node_ptr.npy"))
            if not is_store and any(self.path.iterdir()):
                raise GritError(
                    f"{str(self.path)!r} is not a graph store, so it is not replaced. Choose another place, or remove it."
                )
        except OSError as error:
            raise GritError(f"cannot replace {str(self.path)!r}: {error}. Choose another place.") from None


def _locked_folder(path: Path) -> tuple[Path, FileLock | None]:
    """A new building folder and its lock; None where the file system has no locks."""
    for _ in range(5):
        folder = path.with_name(f"{_prefix(path)}{secrets.token_hex(4)}")
        folder.mkdir()
        held = _hold(folder)
        if held is not None:
            return folder, held
        shutil.rmtree(folder, ignore_errors=True)  # another build took it for an abandoned one before we locked it
    folder.mkdir()  # five times is no accident: there are no locks here, so that nobody else can get one either
    return folder, None


def _hold(folder: Path) -> FileLock | None:
    """The lock of a building folder; None if another process has it, or the folder is gone, or there are no locks."""
    held = FileLock(folder / _LOCK, timeout=0, thread_local=False, fallback_to_soft=False)
    try:
        held.acquire()
    except OSError:  # filelock's Timeout is one, too
        return None
    return held


def _let_go(folder: Path, held: FileLock) -> None:
    held.release()
    with suppress(OSError):  # Windows removes no file that is open, so the folder of the lock may still be there
        folder.rmdir()


def _building_folders(path: Path) -> Iterator[Path]:
    with suppress(OSError):  # a folder that is not there, or cannot be read: who opens or writes the store will say so
        for folder in path.parent.iterdir():
            token = folder.name.removeprefix(_prefix(path))
            if token != folder.name and "." not in token:
                yield folder


def _prefix(path: Path) -> str:
    name = path.name
    if len(os.fsencode(name)) > _LONGEST:
        name = f"{name[: _LONGEST // 8]}-{hashlib.sha256(os.fsencode(name)).hexdigest()[:16]}"
    return f".{name}.building-"
