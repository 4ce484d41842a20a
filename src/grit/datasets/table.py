"""Reading tables of text (CSV, TSV, plain or gzipped) row by row, whoever wrote them."""

import csv
import gzip
import io
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from grit.errors import GritError

MISSING = frozenset({"", "nan", "na", "n/a", "null", "none", "?"})
_DELIMITERS = ",;\t"


class TableRow(NamedTuple):
    """One row: its number (0 is the first below the header), its fields, or why it has none."""

    number: int
    fields: dict[str, str]
    reason: str | None


class Table:
    """A text table with a header.

    Row numbers count every row below the header, empty ones too. A byte-order mark, Windows line ends, quotes, and
    fields over several lines are all understood.

    Args:
        path: ``.csv``, ``.tsv`` or any other text file, possibly gzipped.
        columns: Those that are needed; each must be there exactly once.
    """

    def __init__(self, path: Path, columns: Sequence[str] = ()) -> None:
        self.path = path
        self.header, self.delimiter = self._read_header()
        for column in columns:
            self._check_column(column)
        self.columns = tuple(columns)

    def raw_rows(self) -> Iterator[list[str]]:
        """The fields of all rows, as they stand."""
        try:
            with _open(self.path) as file:
                reader = csv.reader(file, delimiter=self.delimiter)
                next(reader)
                yield from reader
        except (OSError, EOFError, UnicodeDecodeError, csv.Error, zlib.error) as error:
            raise self._unreadable(error) from None

    def rows(self) -> Iterator[TableRow]:
        """All rows, with the needed columns only."""
        yield from (self.parse(number, fields) for number, fields in enumerate(self.raw_rows()))

    def parse(self, number: int, fields: list[str]) -> TableRow:
        """The needed columns of one row, or why it has none."""
        places = {column: self.header.index(column) for column in self.columns}
        if not any(field.strip() for field in fields):
            return TableRow(number, dict.fromkeys(self.columns, ""), "empty line")
        if len(fields) != len(self.header):
            shown = {column: fields[place] if place < len(fields) else "" for column, place in places.items()}
            return TableRow(number, shown, f"{len(fields)} fields, the header has {len(self.header)}")
        return TableRow(number, {column: fields[place].strip() for column, place in places.items()}, None)

    def _read_header(self) -> tuple[list[str], str]:
        try:
            with _open(self.path) as file:
                first = file.readline(1 << 20)
                delimiter = "\t" if ".tsv" in self.path.suffixes else max(_DELIMITERS, key=first.count)
                header = next(csv.reader([first], delimiter=delimiter), [])
        except (OSError, EOFError, UnicodeDecodeError, csv.Error, zlib.error) as error:
            raise self._unreadable(error) from None
        names = [name.strip() for name in header]
        if not any(names):
            raise GritError(
                f"{str(self.path)!r} has no header: its first line is empty. Expected the names of columns."
            )
        return names, delimiter

    def _check_column(self, column: str) -> None:
        count = Counter(self.header)[column]
        if count == 0:
            raise GritError(f"{str(self.path)!r} has no column {column!r}; there are {', '.join(self.header)}.")
        if count > 1:
            raise GritError(f"{str(self.path)!r} has {count} columns called {column!r}; rename all but the one to use.")

    def _unreadable(self, error: Exception) -> GritError:
        advice = " Save it as UTF-8." if isinstance(error, UnicodeDecodeError) else ""
        return GritError(f"cannot read the table {str(self.path)!r}: {error}.{advice}")


def _open(path: Path) -> io.TextIOWrapper:
    with path.open("rb") as file:
        is_gzip = file.read(2) == b"\x1f\x8b"
    binary = gzip.GzipFile(path) if is_gzip else path.open("rb")
    return io.TextIOWrapper(binary, encoding="utf-8-sig", newline="")
