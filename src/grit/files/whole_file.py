"""Writing a file whole or not at all, and what killed writers left behind.

A file is written under a hidden temporary name beside its place, synced, and renamed. The writer holds a lock on the
temporary file, which the system releases when the process dies: so the next writer of the same file can tell what was
abandoned from what another process is still writing, and removes the former.
"""

import errno
import os
import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from grit.errors import GritError

if sys.platform != "win32":  # there an open file cannot be removed, which is all that the lock is for
    import fcntl

ENDING = ".part"
_LONGEST = (
    50  # characters of the name that go into the temporary name: of up to four bytes each, and names have at most 255
)


@contextmanager
def whole_file(path: Path, *, keep_old: Path | None = None) -> Iterator[BinaryIO]:
    """A file to write, which is at ``path`` after the block, complete and on disk; if the block fails all is as before.

    What killed writers of the same file left is removed.

    Args:
        path: Where the file will be.
        keep_old: Where the file that was at ``path`` is kept. There is no moment without one at ``path``.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):  # /dev/null would become a file, if root asks for it
        raise OSError(errno.EINVAL, "it is neither a file nor free", str(path))
    for each in (path, keep_old):
        if each is not None:
            remove_abandoned(each.parent, _prefix(each))
    file = _locked_file(path)
    temporary = Path(file.name)
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if keep_old is not None and path.exists():
                _second_name(path, keep_old)
            if sys.platform == "win32":  # which cannot rename an open file; elsewhere closing it would release the lock
                file.close()
            os.replace(temporary, path)
        sync_folder(path.parent)
    finally:
        with suppress(OSError):  # the error that brought us here is the one to report
            temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Put a text at ``path``, whole or not at all."""
    try:
        with whole_file(path) as file:
            file.write(text.encode())
    except OSError as error:
        raise GritError(f"cannot write {str(path)!r}: {error}") from None


def remove_abandoned(folder: Path, prefix: str = ".") -> None:
    """Remove the temporary files of writers that are gone."""
    with suppress(OSError):  # a folder that cannot be read or changed: writing will say so
        for path in folder.iterdir():
            if path.name.startswith(prefix) and path.name.endswith(ENDING) and path.is_file():
                with suppress(OSError), path.open("r+b") as file:  # NFS locks only what is open for writing
                    if try_lock(file.fileno()):
                        path.unlink()


def _prefix(path: Path) -> str:
    """How the temporary names of a file begin."""
    return f".{path.name[:_LONGEST]}."


def _temporary(path: Path) -> Path:
    """A new temporary name beside a file."""
    return path.with_name(f"{_prefix(path)}{secrets.token_hex(4)}{ENDING}")


def _locked_file(path: Path) -> BinaryIO:
    """A new file under a temporary name of ``path``, locked; not locked where the file system has no locks."""
    for _ in range(5):
        file = _temporary(path).open("xb")
        try:
            # Another writer may have taken the file for an abandoned one before we locked it.
            if try_lock(file.fileno()) and os.path.samestat(os.stat(file.name), os.fstat(file.fileno())):
                return file
        except FileNotFoundError:
            pass
        file.close()
        Path(file.name).unlink(missing_ok=True)
    return _temporary(path).open(
        "xb"
    )  # five times is no accident: there are no locks here, so nobody else gets one either


def _second_name(path: Path, second: Path) -> None:
    """Give a file a second name, in place of what has it now."""
    fresh = _temporary(second)
    try:
        os.link(path, fresh)
    except OSError:  # a file system without links
        shutil.copyfile(path, fresh)
    os.replace(fresh, second)
    fresh.unlink(missing_ok=True)  # renaming does nothing where both are names of one file already


def try_lock(descriptor: int) -> bool:
    """Lock an open file until it is closed or the process ends; False if another process holds it."""
    if sys.platform == "win32":
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # another process holds it, or the file system has no locks
        return False
    return True


def sync_folder(folder: Path) -> None:
    """Make a rename in a folder outlast a power failure, where the system can."""
    if sys.platform == "win32":
        return
    with suppress(OSError):  # some file systems cannot
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
