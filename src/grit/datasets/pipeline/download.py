"""Downloading official files, from servers that may be slow, broken or hostile.

A file appears in its place only when it is complete and verified. Until then it has a temporary name, and the next download of
the same file removes what a killed one left (`grit.files.whole_file`). A download is given up when fewer than `SLOWEST` bytes
a second came over ``timeout`` seconds, whatever the server does to look busy, or when it exceeds `LARGEST` bytes.
"""

import http.client
import os
import queue
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, NamedTuple

from grit.datasets.pipeline.source_files import SourceFile
from grit.errors import GritError
from grit.files.whole_file import whole_file

SLOWEST = 1_000  # bytes a second
LARGEST = 16 << 30  # bytes; the official files have at most a few GB

DownloadProgress = Callable[[int, int | None], None]
"""Called with the bytes so far and the bytes in all, if known."""


class _DownloadFailed(Exception):
    """Why the server's answer is of no use; an `OSError` would not tell a broken network from a full disk."""


class _Arrived(NamedTuple):
    """A block of the file, with the length of the whole file if that is known; empty at the end, or if there was an error."""

    data: bytes = b""
    total: int | None = None
    error: str | None = None


def fetch(file: SourceFile, folder: Path, *, progress: DownloadProgress | None = None, timeout: float = 30.0) -> Path:
    """The file in ``folder``, downloaded if it is not there, verified in either case.

    Args:
        file: What to fetch.
        folder: Where it is kept.
        progress: See `DownloadProgress`.
        timeout: Seconds without an answer worth the name (`SLOWEST`) after which the download is given up.
    """
    path = folder / file.name
    if os.path.isfile(path):
        file.verify(path)
        return path
    if file.url is None:
        raise GritError(f"{file.name} has no official address; put it into {str(folder)!r}.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as out:
            _copy(file.url, out, progress, timeout)
            out.flush()
            try:
                file.verify(Path(out.name), shown="what came")
            except GritError as error:
                raise _DownloadFailed(str(error).removesuffix(".")) from None
    except OSError as error:
        raise GritError(f"cannot write {str(path)!r}: {error}") from None
    except _DownloadFailed as error:
        raise GritError(
            f"cannot download {file.name} from {file.url} ({error}).\n"
            f"Without a network: download it elsewhere and put it at {str(path)!r}, "
            "or name the folder that has it with --from."
        ) from None
    return path


def _copy(url: str, out: BinaryIO, progress: DownloadProgress | None, timeout: float) -> None:
    """Write what a thread reads: looking up a name, or a header that comes byte by byte, heeds no time-out of Python's."""
    arriving: queue.Queue[_Arrived] = queue.Queue(maxsize=16)
    stop = threading.Event()
    threading.Thread(target=_read, args=(url, timeout, arriving, stop), daemon=True).start()
    done, done_before, deadline = 0, 0, time.monotonic() + timeout
    try:
        while True:
            try:
                arrived = arriving.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                arrived = None
            if arrived is not None:
                if arrived.error is not None:
                    raise _DownloadFailed(arrived.error)
                done += len(arrived.data)
                if max(done, arrived.total or 0) > LARGEST:
                    raise _DownloadFailed(f"it is larger than {LARGEST:,} bytes")
                if not arrived.data:
                    break
                out.write(arrived.data)
                if progress is not None:
                    progress(done, arrived.total)
            if time.monotonic() >= deadline:
                if done - done_before < SLOWEST * timeout:
                    raise _DownloadFailed(f"only {done - done_before:,} bytes came in {timeout:g} seconds")
                done_before, deadline = done, time.monotonic() + timeout
        if arrived.total is not None and done != arrived.total:
            raise _DownloadFailed(f"the connection ended after {done:,} of {arrived.total:,} bytes")
    finally:
        stop.set()


def _read(url: str, timeout: float, arriving: "queue.Queue[_Arrived]", stop: threading.Event) -> None:
    def hand_over(arrived: _Arrived) -> None:
        while not stop.is_set():
            try:
                return arriving.put(arrived, timeout=0.1)
            except queue.Full:
                continue

    try:
        with urllib.request.urlopen(url, timeout=timeout) as answer:
            length = answer.headers.get("Content-Length")
            total = None if length is None else int(length)
            if total is not None and total < 0:
                raise ValueError(f"the server says that it has {total} bytes")
            while not stop.is_set() and (block := answer.read1(1 << 20)):
                hand_over(_Arrived(block, total))
        hand_over(_Arrived(total=total))
    except urllib.error.HTTPError as error:
        error.close()
        hand_over(_Arrived(error=_shown(error)))
    except (OSError, http.client.HTTPException, ValueError) as error:
        hand_over(_Arrived(error=_shown(error)))
    except BaseException as error:  # whoever waits for this thread would hear of no other exception
        hand_over(_Arrived(error=f"{type(error).__name__}: {_shown(error)}"))


def _shown(error: BaseException) -> str:
    """What a server said, fit for a terminal."""
    text = str(error) or type(error).__name__
    return "".join(character if character.isprintable() else "?" for character in text[:200])
