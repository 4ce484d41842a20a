"""Who could have written a file. To load a library is to run it: nobody but the user and root may have made it."""

import os
import stat
from collections.abc import Collection
from pathlib import Path

from grit.kernels.compiler import KernelsUnavailable


class UnsafeFolder(KernelsUnavailable):
    """Others could put a library into a folder."""


def writers(status: os.stat_result) -> set[str]:
    """Who can write a file, or add files to a folder and remove them."""
    found = {f"user {status.st_uid}"}
    if status.st_mode & stat.S_IWGRP:
        found.add(f"group {status.st_gid}")
    if status.st_mode & stat.S_IWOTH:
        found.add("others")
    return found


def us() -> set[str]:
    """The user, and root."""
    return {f"user {os.geteuid()}", "user 0"}


def check_folder(folder: Path) -> None:
    """Raise unless only we can put files into a folder, and only we can put another folder in its place.

    Args:
        folder: Without links (`os.path.realpath`). What does not exist yet is not looked at.
    """
    # In a user namespace (Apptainer, rootless containers) the system's folders seem to belong to the owner of /.
    system = us() | {f"user {os.stat('/').st_uid}"}
    try:
        for path in (folder, *folder.parents):
            try:
                status = os.lstat(path)
            except (FileNotFoundError, NotADirectoryError):
                continue
            if path == folder:
                check(path, writers(status), us())
            elif status.st_mode & stat.S_ISVTX:  # as /tmp is: others cannot rename there what is ours
                check(path, {f"user {status.st_uid}"}, system)
            else:
                check(path, writers(status), system)
    except (KernelsUnavailable, OSError) as problem:
        raise UnsafeFolder(str(problem)) from None


def open_checked(file: Path, trusted: Collection[str]) -> int:
    """Open a file for reading, if it is one and only those can have written it. What was opened is what was checked."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        why = "it is a link" if file.is_symlink() else error.strerror
        raise KernelsUnavailable(f"{file} is not safe to load: {why}") from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise KernelsUnavailable(f"{file} is not safe to load: it is not a regular file")
        check(file, writers(status), trusted)
    except KernelsUnavailable:
        os.close(descriptor)
        raise
    return descriptor


def check(path: Path, found: set[str], trusted: Collection[str]) -> None:
    """Raise if somebody else can write there."""
    strangers = sorted(found.difference(trusted))
    owners = [who for who in strangers if who.startswith("user")]
    if owners:
        raise KernelsUnavailable(f"{path} belongs to somebody else ({owners[0]}), so it is not used")
    if strangers:
        raise KernelsUnavailable(f"other users can write to {path}, so it is not used (chmod go-w {path})")
