"""What tables of all formats share: a header, rows of text with the place they came from, a checksum, and clear errors."""

import json
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from grit.datasets.tables.decimal_comma import decimal_named, why_unclear, with_point
from grit.datasets.tables.source import TableSource
from grit.errors import GritError, shorten

MISSING = frozenset({"", "nan", "na", "n/a", "null", "none", "?"})
_LISTED = 50  # columns that a message names
_QUOTED = 1000  # characters of cells that a reason repeats, because they have no column
_KEPT_TOGETHER = 512


class ReadOptions(NamedTuple):
    """What a user says about a file; None is recognised.

    Attributes:
        separator: Between the cells of a text table: a character, or ``tab``.
        encoding: Of a text file, as Python names it, such as ``utf-8`` or ``cp1252``.
        sheet: Of a workbook, its name or its number from 1.
        decimal: Of numbers written as text: ``comma`` or ``point``.
    """

    separator: str | None = None
    encoding: str | None = None
    sheet: str | None = None
    decimal: str | None = None


NO_OPTIONS = ReadOptions()


class Record(NamedTuple):
    """The fields of a row, and what is wrong with it.

    Attributes:
        line: The line of the file on which it begins, or the row of a sheet.
        fields: As text; where the row is short, or cannot be read, fewer than the header has.
        reason: What is wrong with the whole row, if so.
        unusable: What is wrong with single cells: the number of the column, from 0, and a reason.
    """

    line: int
    fields: list[str]
    reason: str | None
    unusable: tuple[tuple[int, str], ...] = ()


class TableRow(NamedTuple):
    """One row.

    Attributes:
        number: 0 is the first.
        line: Where it is: the line as an editor shows it, or the row of a sheet; the header is line 1 in most formats.
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
        rows = iter(rows)
        self._blocks: list[bytes] = []
        while block := list(islice(rows, _KEPT_TOGETHER)):
            self._blocks.append(zlib.compress(json.dumps(block).encode(), 1))

    def __iter__(self) -> Iterator[TableRow]:
        for block in self._blocks:
            yield from (TableRow(*row) for row in json.loads(zlib.decompress(block)))


class Table(ABC):
    """A table with named columns. The file is opened once: the header is read at once, the rows when they are asked for.

    Args:
        path: The file, possibly gzipped.
        columns: Those that are needed; each must be there exactly once.
        options: What the user says about the file.

    Attributes:
        path: The file.
        header: The names of all columns.
        columns: The names of those that are needed.
        molecules: The column of SMILES, where the format says which it is.
        titles: The column of titles, where the format has them beside the columns.
        notes: Sentences about what was recognised, where a user may have meant something else.
        comma_columns: Numbers of the columns whose numbers have decimal commas; rows have them with points.
    """

    def __init__(self, path: Path, columns: Sequence[str] = (), options: ReadOptions = NO_OPTIONS) -> None:
        self.path = path
        self.options = options
        self.notes: list[str] = []
        self.molecules: str | None = None
        self.titles: str | None = None
        self.comma_columns: frozenset[int] = frozenset()
        self._source = TableSource(path)
        self._is_read = False
        decimal = decimal_named(options.decimal)
        self.header = self._open(self._source)
        if decimal is not None:
            self.comma_columns = frozenset(range(len(self.header)) if decimal == "comma" else ())
        self.need(columns)

    @abstractmethod
    def _open(self, source: TableSource) -> list[str]:
        """Read as much as the header takes; the names of the columns."""

    @abstractmethod
    def _records(self) -> Iterator[Record]:
        """All rows, once."""

    def need(self, columns: Sequence[str]) -> None:
        """Choose the columns that rows will have; each must be there exactly once."""
        for column in columns:
            self._check_column(column)
        self.columns = tuple(columns)
        self._places = {column: self.header.index(column) for column in columns}

    @property
    def sha256(self) -> str:
        """Of all bytes of the file as it is, packed or not."""
        return self._source.sha256

    def expected_rows(self) -> int | None:
        """About how many rows there are, where that can be told before they are read."""
        return None

    def records(self) -> Iterator[Record]:
        """All rows with all their fields, as they stand; they can be read once."""
        if self._is_read:
            raise RuntimeError(f"the rows of {str(self.path)!r} were read already")
        self._is_read = True
        yield from self._records()
        self._source.close()

    def rows(self) -> Iterator[TableRow]:
        """All rows, with the needed columns only."""
        yield from (self.parse(number, record) for number, record in enumerate(self.records()))

    def parse(self, number: int, record: Record) -> TableRow:
        """The needed columns of one row, or why it has none."""
        fields = record.fields
        if record.reason is None and not any(field.strip() for field in fields):
            return TableRow(number, record.line, dict.fromkeys(self.columns, ""), "empty line")
        cells = {column: fields[at].strip() if at < len(fields) else "" for column, at in self._places.items()}
        reason = record.reason or self._reason(record, cells)
        for column, at in self._places.items() if self.comma_columns else ():
            if at in self.comma_columns:
                unclear = why_unclear(cells[column])
                reason = reason or (f"{column!r}: {unclear}" if unclear else None)
                cells[column] = with_point(cells[column])
        return TableRow(number, record.line, cells, reason)

    def _reason(self, record: Record, cells: dict[str, str]) -> str | None:
        fields, width = record.fields, len(self.header)
        for place, reason in record.unusable:
            if place in self._places.values():
                return f"{self.header[place]!r}: {reason}"
        if len(fields) != width:
            extra = ", ".join(field for field in fields[width:] if field.strip())
            extra = f"; too many: {extra[:_QUOTED]}{'...' if len(extra) > _QUOTED else ''}" if extra else ""
            return f"{len(fields)} fields, the header has {width}{extra}"
        # A line break in a comment is one thing, in a SMILES or a number another: RDKit would read up to it.
        broken = [column for column, cell in cells.items() if "\n" in cell or "\r" in cell]
        if not broken:
            return None
        count = len(cells[broken[0]].splitlines())
        return f"a line break inside the cell {broken[0]!r}, which goes over {count} lines; is there a quote too many?"

    def _check_column(self, column: str) -> None:
        count = Counter(self.header)[column]
        if count == 0:
            raise GritError(
                f"{str(self.path)!r} has no column {column!r}; there are {listed(self.header)}. Name the column of SMILES with "
                "--smiles, those to predict with --target (smiles=, targets= in Python)."
            )
        if count > 1:
            raise GritError(f"{str(self.path)!r} has {count} columns called {column!r}; rename all but the one to use.")


def listed(header: Sequence[str]) -> str:
    """The names of columns, as a message lists them."""
    more = f" and {len(header) - _LISTED:,} more" if len(header) > _LISTED else ""
    return ", ".join(map(shorten, header[:_LISTED])) + more
