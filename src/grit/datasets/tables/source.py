"""The bytes of a table: an ordinary file, read through once for its checksum, and unpacked if it is gzipped."""

import gzip
import hashlib
import io
import os
import tempfile
import weakref
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from grit.errors import GritError
from grit.files.ordinary_file import check_ordinary

MAX_UNPACKED = 4 << 30  # bytes of a gzipped workbook or Parquet file, which must be unpacked as a whole
_IN_MEMORY = 16 << 20  # up to here without a temporary file
_BLOCK = 1 << 20
_GZIP = b"\x1f\x8b"


class TableSource:
    """An open file. It must not change while it is read: `close` notices if it did.

    Attributes:
        path: The file.
        sha256: Of its bytes as they are, packed or not.
        lines: How many there are; None if it is packed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with self.reading():
            self._file = check_ordinary(path).open("rb")
            weakref.finalize(self, self._file.close)  # a table that nobody reads to its end is closed, too
            self._state = self._now()
            digest, lines = hashlib.sha256(), 0
            while block := self._file.read(_BLOCK):
                digest.update(block)
                lines += block.count(b"\n")
            self.sha256 = digest.hexdigest()
            self._is_packed = self._from_start().read(2) == _GZIP
            self.lines = None if self._is_packed else lines

    @contextmanager
    def reading(self) -> Iterator[None]:
        """What goes wrong with the file inside the block is a `GritError`."""
        try:
            yield
        except (OSError, EOFError, zlib.error) as error:
            raise self.unreadable(f"{error}") from None

    def unreadable(self, what: str) -> GritError:
        """The error for a table that cannot be read."""
        return GritError(f"cannot read the table {str(self.path)!r}: {what}.")

    def stream(self) -> BinaryIO:
        """The bytes from the beginning, unpacked on the way."""
        file = self._from_start()
        return cast("BinaryIO", gzip.GzipFile(fileobj=file) if self._is_packed else io.BufferedReader(_Lent(file)))

    def unpacked(self) -> BinaryIO:
        """The bytes as a file with random access; one that is gzipped is unpacked to a temporary file."""
        if not self._is_packed:
            return self._from_start()
        out = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 (as long as the table)
        weakref.finalize(self, out.close)
        with self.reading():
            packed = self.stream()
            while block := packed.read(_BLOCK):
                if out.tell() + len(block) > MAX_UNPACKED:
                    raise self.unreadable(
                        f"unpacked it has more than {MAX_UNPACKED >> 30} GiB. Unpack it first (gunzip)"
                    )
                out.write(block)
            out.seek(0)
        return cast("BinaryIO", out)

    def close(self) -> None:
        """Close the file; an error if it is no longer what it was when it was opened."""
        is_same = self._now() == self._state
        self._file.close()
        if not is_same:
            raise self.unreadable("it was changed while it was read. Try again when it is complete")

    def _from_start(self) -> BinaryIO:
        self._file.seek(0)
        return self._file

    def _now(self) -> tuple[int, int]:
        found = os.fstat(self._file.fileno())
        return found.st_size, found.st_mtime_ns


class _Lent(io.RawIOBase):
    """A file for a reader that closes what it reads from when it is done; the file stays open."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = self._file.read(len(buffer))
        buffer[: len(block)] = block
        return len(block)
