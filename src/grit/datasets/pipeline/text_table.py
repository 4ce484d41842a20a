"""Reading tables of text (CSV, TSV, plain or gzipped) row by row, once, whoever wrote them."""

import csv
import gzip
import hashlib
import io
import json
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from grit.datasets.pipeline.featurise_rows import batched
from grit.datasets.pipeline.records import MAX_CHARACTERS, Record, read_records
from grit.errors import GritError
from grit.files.ordinary_file import check_ordinary
from grit.files.spreadsheet import unguarded

MISSING = frozenset({"", "nan", "na", "n/a", "null", "none", "?"})
_DELIMITERS = ",;\t"
_LINE_ENDS = ("\n", "\r")


class TableRow(NamedTuple):
    """One row.

    Attributes:
        number: 0 is the first below the header.
        line: The line of the file on which it begins, as an editor shows it; the header is line 1.
        fields: The needed columns.
        reason: Why the row cannot be used, if so.
    """

    number: int
    line: int
    fields: dict[str, str]
    reason: str | None


class KeptRows:
    """Rows in memory, to be gone through again and again. Compressed, they need less room than the file does."""

    def __init__(self, rows: Iterable[TableRow]) -> None:
        self._blocks = [zlib.compress(json.dumps(block).encode(), 1) for block in batched(rows, 512)]

    def __iter__(self) -> Iterator[TableRow]:
        for block in self._blocks:
            yield from (TableRow(*row) for row in json.loads(zlib.decompress(block)))


class TextTable:
    """A text table with a header. The file is opened once: the header is read at once, the rows when they are asked for.

    Row numbers count every row below the header, empty ones too. A byte-order mark, Windows line ends, quotes, and
    cells over several lines are all understood; `grit.datasets.pipeline.records` says what becomes of a missing quote.

    Args:
        path: ``.csv``, ``.tsv`` or any other text file, possibly gzipped.
        columns: Those that are needed; each must be there exactly once.
    """

    def __init__(self, path: Path, columns: Sequence[str] = ()) -> None:
        self.path = path
        self._digest = hashlib.sha256()
        self._lines: Iterator[str] | None = self._read_lines()
        self.header, self.delimiter = self._read_header(next(self._lines, ""))
        self.need(columns)

    def need(self, columns: Sequence[str]) -> None:
        """Choose the columns that rows will have; each must be there exactly once."""
        for column in columns:
            self._check_column(column)
        self.columns = tuple(columns)
        self._places = {column: self.header.index(column) for column in columns}

    @property
    def sha256(self) -> str:
        """Of all bytes of the file, once all rows were read."""
        return self._digest.hexdigest()

    def records(self) -> Iterator[Record]:
        """All rows with all their fields, as they stand; they can be read once."""
        lines, self._lines = self._lines, None
        if lines is None:
            raise RuntimeError(f"the rows of {str(self.path)!r} were read already")
        for record in read_records(lines, self.delimiter, len(self.header)):
            yield record._replace(fields=[unguarded(field) if field[:1] == "'" else field for field in record.fields])

    def rows(self) -> Iterator[TableRow]:
        """All rows, with the needed columns only."""
        yield from (self.parse(number, record) for number, record in enumerate(self.records()))

    def parse(self, number: int, record: Record) -> TableRow:
        """The needed columns of one row, or why it has none."""
        fields = record.fields
        if record.reason is None and not any(field.strip() for field in fields):
            return TableRow(number, record.line, dict.fromkeys(self.columns, ""), "empty line")
        cells = {column: fields[at].strip() if at < len(fields) else "" for column, at in self._places.items()}
        return TableRow(number, record.line, cells, record.reason or self._reason(fields, cells))

    def _reason(self, fields: list[str], cells: dict[str, str]) -> str | None:
        if len(fields) != len(self.header):
            return f"{len(fields)} fields, the header has {len(self.header)}"
        # A line break in a comment is one thing, in a SMILES or a number another: RDKit would read up to it.
        broken = [column for column, cell in cells.items() if "\n" in cell or "\r" in cell]
        if not broken:
            return None
        count = len(cells[broken[0]].splitlines())
        return f"a line break inside the cell {broken[0]!r}, which goes over {count} lines; is there a quote too many?"

    def _read_header(self, first: str) -> tuple[list[str], str]:
        if "\0" in first:
            raise self._unreadable("line 1 holds NUL characters, as UTF-16 and binary files do. Save it as UTF-8")
        delimiter = "\t" if ".tsv" in self.path.suffixes else max(_DELIMITERS, key=first.count)
        try:
            header = next(csv.reader([first], delimiter=delimiter, strict=True), [])
        except csv.Error as error:
            raise self._unreadable(
                f"line 1, the names of the columns, has quotes that do not close ({error})"
            ) from None
        names = [unguarded(name.strip()) for name in header]
        if not any(names):
            raise GritError(
                f"{str(self.path)!r} has no header: its first line is empty. Expected the names of columns."
            )
        return names, delimiter

    def _read_lines(self) -> Iterator[str]:
        """The lines with their ends. Of one that is far too long its beginning, so that its length shows."""
        number = 0
        try:
            with _HashedFile(check_ordinary(self.path), self._digest) as raw:
                file = _as_text(io.BufferedReader(raw))
                while line := file.readline(MAX_CHARACTERS + 1):
                    number += 1
                    if not line.isascii():
                        line.encode()
                    rest = line
                    while len(rest) > MAX_CHARACTERS and not rest.endswith(_LINE_ENDS):
                        rest = file.readline(MAX_CHARACTERS + 1)
                    yield line
        except UnicodeEncodeError:
            raise self._unreadable(
                f"line {number} is not UTF-8 text. Save it as UTF-8; spreadsheets call that CSV UTF-8"
            ) from None
        except (OSError, EOFError, zlib.error) as error:
            raise self._unreadable(f"{error}") from None

    def _check_column(self, column: str) -> None:
        count = Counter(self.header)[column]
        if count == 0:
            raise GritError(f"{str(self.path)!r} has no column {column!r}; there are {', '.join(self.header)}.")
        if count > 1:
            raise GritError(f"{str(self.path)!r} has {count} columns called {column!r}; rename all but the one to use.")

    def _unreadable(self, what: str) -> GritError:
        return GritError(f"cannot read the table {str(self.path)!r}: {what}.")


class _HashedFile(io.FileIO):
    """A file that tells a digest of all bytes that are read from it."""

    def __init__(self, path: Path, digest: "hashlib._Hash") -> None:
        super().__init__(path)
        self._digest = digest

    def readinto(self, buffer: Any) -> int:
        count = super().readinto(buffer)
        self._digest.update(memoryview(buffer)[:count])
        return count


def _as_text(file: io.BufferedReader) -> io.TextIOWrapper:
    binary = gzip.GzipFile(fileobj=file) if file.peek(2)[:2] == b"\x1f\x8b" else file
    # Bytes that are no UTF-8 pass as lone surrogates, which `_read_lines` finds: so it can name the line.
    return io.TextIOWrapper(binary, encoding="utf-8-sig", errors="surrogateescape", newline="")
