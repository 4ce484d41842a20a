"""Rows of a table that is being made, kept on disk until it is complete, so that whoever stops the work can go on with it.

The file has a block for what the table is made of, then one for every piece of rows. Each block has its length and a checksum,
so that what a kill left half-written is noticed and cut off. The file is locked while it is written.
"""

import json
import struct
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from grit.errors import GritError
from grit.files.whole_file import try_lock

_HEAD = struct.Struct(">II")  # length and checksum of a block
_LONGEST = 50  # characters of the name of the table that go into the name of the file


class Finished(NamedTuple):
    """Some rows that are done: their cells, and how many of them have no result."""

    rows: list[list[str]]
    without: int


class UnfinishedRows:
    """The rows of ``out`` that are done.

    Args:
        out: The file that they will make up; theirs is a hidden one beside it.
        made_of: What they depend on, in the user's words: the table, the model ... and a checksum or a value of each.
        resume: Whether to go on with rows that are there. Without it, rows that are there are an error, unless they are of no
            use because they were made of something else.

    Attributes:
        count: Rows that are done.
        without: Rows among them that have no result.
    """

    def __init__(self, out: Path, made_of: Mapping[str, str], *, resume: bool) -> None:
        self.path = out.with_name(f".{out.name[:_LONGEST]}.unfinished")
        self.count, self.without = 0, 0
        with _writing(self.path):
            self._file = _locked(self.path)
        try:
            with _writing(self.path):
                self._begin(dict(made_of), resume)
        except BaseException:
            self.close()
            raise

    def _begin(self, made_of: dict[str, str], resume: bool) -> None:
        blocks = self._blocks()
        first = next(blocks, None)
        if first is not None:
            for block in blocks:
                self.count += len(block["rows"])
                self.without += block["without"]
        if first != made_of and not resume:
            self.count, self.without = 0, 0  # of no use to this work
        if self.count and not resume:
            raise GritError(
                f"{self.count:,} rows were done before, when the work was stopped. Go on with them with --resume, or remove "
                f"{str(self.path)!r} to begin again."
            )
        if self.count and first != made_of:
            known = first if isinstance(first, dict) else {}
            other = [name for name in {**made_of, **known} if known.get(name) != made_of.get(name)]
            raise GritError(
                f"cannot go on: the {self.count:,} rows that are done were made with another {' and another '.join(other)}. "
                f"Remove {str(self.path)!r} to begin again."
            )
        if not self.count:
            self._file.seek(0)
            self._file.truncate()
            self._append(made_of)

    def append(self, finished: Finished) -> None:
        """Keep some more rows."""
        with _writing(self.path):
            self._append(finished._asdict())
        self.count += len(finished.rows)
        self.without += finished.without

    def rows(self) -> Iterator[list[str]]:
        """All rows that are done, from the first."""
        for number, block in enumerate(self._blocks()):
            if number:
                yield from block["rows"]

    def close(self) -> None:
        """Leave the rows for the next time; without any, nothing."""
        if not self._file.closed:
            if not self.count:
                self.path.unlink(missing_ok=True)
            self._close_file()

    def remove(self) -> None:
        """The table is complete: the rows are no longer needed."""
        self.path.unlink(missing_ok=True)
        self._close_file()

    def _close_file(self) -> None:
        with suppress(OSError):  # what a full disk did not take, and was cut off or removed
            self._file.close()

    def _append(self, block: object) -> None:
        data = zlib.compress(json.dumps(block).encode(), 1)
        self._file.seek(0, 2)
        self._file.write(_HEAD.pack(len(data), zlib.crc32(data)) + data)
        self._file.flush()

    def _blocks(self) -> Iterator[dict]:  # type: ignore[type-arg]
        """The sound blocks from the first; what follows them is cut off."""
        self._file.seek(0)
        while True:
            place = self._file.tell()
            head = self._file.read(_HEAD.size)
            length, checksum = _HEAD.unpack(head) if len(head) == _HEAD.size else (0, 0)
            data = self._file.read(length)
            if not data or len(data) < length or zlib.crc32(data) != checksum:
                self._file.truncate(place)
                return
            after = self._file.tell()
            yield json.loads(zlib.decompress(data))
            self._file.seek(after)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise GritError(f"cannot write {str(path)!r}: {error.strerror or error}.") from error


def _locked(path: Path) -> BinaryIO:
    """The file, made if it is not there, and locked; an error if another process writes it."""
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise GritError(f"cannot write {str(path)!r}: it is not an ordinary file. Remove it.")
    path.touch()
    file = path.open("r+b")
    if not try_lock(file.fileno()):
        file.close()
        raise GritError(f"{str(path)!r} is in use: another process makes the same file. Wait for it, or name another.")
    return file
