"""Tables of text: CSV, TSV and the like, whoever wrote them."""

import csv
import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice

from grit.datasets.tables.decimal_comma import comma_columns
from grit.datasets.tables.records import read_records
from grit.datasets.tables.source import TableSource
from grit.datasets.tables.table import MISSING, Record, Table, listed
from grit.datasets.tables.text_lines import encoding_of, read_lines
from grit.errors import GritError
from grit.files.spreadsheet import unguarded

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_LOOKED_AT = 50  # lines below the header that tell the separator
_LOOKED_AT_FOR_COMMAS = 1_000  # that tell whether numbers have decimal commas
_LOOKED_AT_CHARACTERS = 1_000_000  # of them together
_NAMED_SEPARATOR = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f]")


class TextTable(Table):
    """A text table with a header.

    Row numbers count every row below the header, empty ones too. Windows line ends, quotes, and cells over several lines are all
    understood; `grit.datasets.tables.records` says what becomes of a missing quote, `grit.datasets.tables.text_lines` which
    encodings are recognised. The separator is the one by which most rows have as many fields as the header, see
    `recognise_separator`; a first line ``sep=;``, which spreadsheets write, is obeyed.
    """

    def _open(self, source: TableSource) -> list[str]:
        encoding = encoding_of(source, self.options.encoding)
        if encoding.note:
            self.notes.append(encoding.note)
        self._lines = read_lines(source, encoding)
        self._first = 2
        first, named = next(self._lines, ""), None
        if told := _NAMED_SEPARATOR.fullmatch(first):
            first, named, self._first = next(self._lines, ""), told[1], 3
        if _CONTROL.search(first):
            raise source.unreadable(
                "line 1 holds NUL or other control characters, as UTF-16 and binary files do. Save it as UTF-8"
            )
        usual = "\t" if {".tsv", ".tab"} & {suffix.lower() for suffix in self.path.suffixes} else ","
        sample = list(self._sample())
        asked = separator_named(self.options.separator)
        self.delimiter = asked or named or recognise_separator(first, sample[:_LOOKED_AT], usual)
        self._lines = chain(sample, self._lines)
        if self.delimiter not in (usual, asked):
            what = SEPARATORS.get(self.delimiter, repr(self.delimiter))
            self.notes.append(f"{self.path.name}: columns are separated by {what} (--separator names another).")
        try:
            header = next(csv.reader([first], delimiter=self.delimiter, strict=True), [])
        except csv.Error as error:
            raise source.unreadable(
                f"line {self._first - 1}, the names of the columns, has quotes that do not close ({error})"
            ) from None
        names = [unguarded(name.strip()) for name in header]
        if not any(names):
            raise GritError(
                f"{str(self.path)!r} has no header: its first line is empty. Expected the names of columns."
            )
        self._recognise_commas(names, sample)
        return names

    def _recognise_commas(self, names: Sequence[str], sample: Sequence[str]) -> None:
        rows = (_cells(line, self.delimiter) for line in sample)
        found = comma_columns(rows, len(names))
        if not found or self.options.decimal is not None:
            return
        self.comma_columns = found
        where = listed([names[place] for place in sorted(found)])
        self.notes.append(
            f"{self.path.name}: numbers have decimal commas in {where} (--decimal point leaves them as they are)."
        )

    def _sample(self) -> Iterator[str]:
        size = 0
        for line in islice(self._lines, _LOOKED_AT_FOR_COMMAS):
            yield line
            size += len(line)
            if size > _LOOKED_AT_CHARACTERS:
                return

    def expected_rows(self) -> int | None:
        """As many as there are lines."""
        return self._source.lines

    def _records(self) -> Iterator[Record]:
        for record in read_records(self._lines, self.delimiter, len(self.header), self._first):
            yield record._replace(fields=[unguarded(field) if field[:1] == "'" else field for field in record.fields])


def separator_named(name: str | None) -> str | None:
    """The separator that a user names: a character, or the word tab."""
    if name is None:
        return None
    separator = "\t" if name.lower() in ("tab", "\\t") else name
    if len(separator) != 1 or separator in '"\r\n':
        raise GritError(f"--separator is one character, such as ; or the word tab, got {name!r}.")
    return separator


def recognise_separator(header: str, sample: Sequence[str], usual: str) -> str:
    """What stands between the cells of a table.

    It must divide the header. Of several that do, the one by which most lines have as many fields as the header; then the one
    that makes the most columns; then the usual one.

    Args:
        header: The first line.
        sample: Some lines below it.
        usual: What the ending of the file suggests.
    """
    filled = [line for line in sample if line.strip()]

    def fit(separator: str) -> tuple[bool, float, int, bool]:
        width = _width(header, separator, strict=False)  # its quotes are somebody else's to judge
        agreeing = sum(_width(line, separator, strict=True) == width for line in filled)
        return width > 1, agreeing / max(1, len(filled)) if width > 1 else 0, width, separator == usual

    return max(SEPARATORS, key=fit)


def _cells(line: str, separator: str) -> list[str]:
    """The cells of a line without those that stand for no value; none if it cannot be read."""
    try:
        cells = next(csv.reader([line], delimiter=separator), [])
    except csv.Error:
        return []
    return ["" if cell.strip().lower() in MISSING else cell for cell in cells]


def _width(line: str, separator: str, *, strict: bool) -> int:
    """Fields of a line; 0 if its quotes do not fit and must."""
    try:
        return len(next(csv.reader([line], delimiter=separator, strict=strict), []))
    except csv.Error:
        return 0
