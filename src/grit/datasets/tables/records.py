"""From the lines of a text table to its records: cells may hold line breaks, and one missing quote costs its own lines only.

A line that ends inside a quoted cell can be read in two ways. Either the record goes on, as every writer of CSV means it; or a
quote is missing, and the next line is a row. To a plain reader of CSV the second makes one cell of all that follows. The rule:

- The record goes on if its quotes close, each before a delimiter or at the end of a line, it has as many fields as the header
  and at most `MAX_LINES` lines. Whatever else its lines look like: a comment may hold lines that could be rows.
- Both ways are then followed to the first line where one of them meets a *broken quote*: text after the quote that closes a
  cell, a quote inside a cell that does not begin with one, or a quote that is still open at the end of the table. The first way
  is given up if it is the first to meet one, because what CSV writers write has none. At most `MAX_LINES` lines, and fifty with
  quotes after the record, are looked at; if they do not tell, the record goes on.
- Otherwise the line is a bad row, and the next line begins the next one.

So a table without broken quotes is read as it was written. Where one quote is missing, the next cell with quotes tells: a
wrong reading sees text after its first quote. The exceptions are cells that begin or end with a delimiter or a line break;
there two tables may become the same one by losing a quote, and the row that is given up may be another than the damaged one.
"""

import csv
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from grit.datasets.tables.table import Record
from grit.datasets.tables.text_lines import MAX_CHARACTERS  # of a line, and of a record of several lines

MAX_LINES = 1_000  # of a record
_MAX_TOLD = 50  # lines with quotes after a record that may tell against it

_CLOSE_IT = 'close it, or write "" for a quote inside a cell'
_OPEN_QUOTE = f"a quote opens a cell and does not close it; {_CLOSE_IT}"
_TOO_MANY_LINES = f"a quote opens a cell and does not close it within {MAX_LINES:,} lines; {_CLOSE_IT}"
_TEXT_AFTER_QUOTE = 'text follows the quote that closes a cell; write "" for a quote inside a cell'


class _Ended(NamedTuple):
    """How a line ends: inside a quoted cell or not, the delimiters between its cells, and whether a quote in it is broken."""

    inside: bool
    delimiters: int
    broken: bool


def read_records(lines: Iterator[str], delimiter: str, width: int, first: int = 2) -> Iterator[Record]:
    """The records below a header.

    Args:
        lines: The lines below the header, with their ends.
        delimiter: Between fields.
        width: Fields of the header.
        first: The number of the first of the lines.
    """
    ahead: deque[str] = deque()  # lines that were looked at, and belong to later records
    number = first
    while True:
        line = ahead.popleft() if ahead else next(lines, None)
        if line is None:
            return
        fields, reason, is_open = _parse([line], delimiter)
        count = 1
        if is_open:
            whole = _continued(line, lines, ahead, delimiter, width)
            if isinstance(whole, str):
                reason = whole
            else:
                fields, reason, count = whole[0], None, whole[1]
        yield Record(number, fields, reason)
        number += count
        for _ in range(count - 1):
            ahead.popleft()


def _continued(
    first: str, lines: Iterator[str], ahead: deque[str], delimiter: str, width: int
) -> tuple[list[str], int] | str:
    """The fields of a record whose first line ends in an open quote, and its number of lines; or why it ends there."""
    record = _end_of(first, delimiter, inside=False)  # the way in which the record goes on
    row = _Ended(inside=False, delimiters=0, broken=False)  # the way in which the next line is a row
    delimiters, size, taken, whole, told = record.delimiters, len(first), [first], None, 0
    for place in range(MAX_LINES - 1):
        if whole is not None and (row.broken or told == _MAX_TOLD):
            return whole
        if record.broken or (whole is None and (delimiters >= width or size > MAX_CHARACTERS)):
            return _OPEN_QUOTE
        if len(ahead) == place:
            line = next(lines, None)
            if line is None:
                return _OPEN_QUOTE if record.inside or whole is None else whole
            ahead.append(line)
        line = ahead[place]
        size += len(line)
        record = _end_of(line, delimiter, inside=record.inside)
        row = row if row.broken else _end_of(line, delimiter, inside=row.inside)
        if whole is not None:
            told += '"' in line
        else:
            taken.append(line)
            delimiters += record.delimiters
            if not record.inside and not record.broken:
                fields, reason, _ = _parse(taken, delimiter)
                if reason is not None or len(fields) != width:
                    return _OPEN_QUOTE
                whole = fields, len(taken)
    return _TOO_MANY_LINES if whole is None else whole


def _end_of(line: str, delimiter: str, *, inside: bool) -> _Ended:
    """How a line ends that begins inside a quoted cell, or does not."""
    if '"' not in line:  # almost all
        return _Ended(inside, 0 if inside else line.count(delimiter), broken=False)
    text = line.rstrip("\r\n")
    at, delimiters = 0, 0
    while True:
        if not inside and text.startswith('"', at):
            inside, at = True, at + 1
        if inside:
            at = text.find('"', at) + 1
            if at == 0:
                return _Ended(inside, delimiters, broken=False)
            if text.startswith('"', at):
                at += 1
                continue
            inside = False
        else:
            cell = at
            at = text.find(delimiter, cell)
            at = len(text) if at < 0 else at
            if text.find('"', cell, at) >= 0:
                return _Ended(inside, delimiters, broken=True)
        if at == len(text):
            return _Ended(inside, delimiters, broken=False)
        if text[at] != delimiter:
            return _Ended(inside, delimiters, broken=True)
        delimiters, at = delimiters + 1, at + 1


def _parse(lines: list[str], delimiter: str) -> tuple[list[str], str | None, bool]:
    """The fields of a record as far as they can be told, what is wrong with it, and whether a quote is open at its end."""
    if (
        len(lines) == 1 and '"' not in lines[0] and len(lines[0]) <= csv.field_size_limit()
    ):  # almost all: three times faster
        text = lines[0].rstrip("\r\n")
        return text.split(delimiter) if text else [], None, False
    if len(lines[0]) > MAX_CHARACTERS:
        return [], f"longer than {MAX_CHARACTERS:,} characters", False
    reader = csv.reader([*lines, ""], delimiter=delimiter, strict=True)
    try:
        return next(reader), None, False
    except csv.Error:
        is_open = reader.line_num > len(lines)  # it went on to the line that we added
    try:
        fields = next(csv.reader([*lines[:-1], lines[-1].rstrip("\r\n")], delimiter=delimiter))
    except csv.Error as error:  # a field beyond the limit of the csv module
        return [], str(error), False
    return fields, _OPEN_QUOTE if is_open else _TEXT_AFTER_QUOTE, is_open
