"""From the lines of a text table to its records: a quote that is never closed spoils its own line and no other.

To a plain reader of CSV an open quote makes one cell of all that follows. Here a record takes in further lines only if

- its quotes close, each before a delimiter or at the end of a line,
- it has as many fields as the header, and
- none of the further lines has that many fields by itself: it would then be a row, not part of a cell.

Otherwise the line with the open quote is a bad row, and the next line begins the next one.
"""

import csv
import re
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

MAX_CHARACTERS = 10_000_000  # of a line, and of a record of several lines

_OPEN_QUOTE = 'a quote opens a cell and does not close it; close it, or write "" for a quote inside a cell'
_TEXT_AFTER_QUOTE = 'text follows the quote that closes a cell; write "" for a quote inside a cell'
_ENDS_A_CELL = re.compile(r'(?<!")"(?:"")*(?!")')  # an odd number of quotes: an even one stands for quotes in the cell


class Record(NamedTuple):
    """The fields of a row, the line of the file on which it begins (the header is line 1), and what is wrong with it."""

    line: int
    fields: list[str]
    reason: str | None


def read_records(lines: Iterator[str], delimiter: str, width: int) -> Iterator[Record]:
    """The records below a header.

    Args:
        lines: The lines below the header, with their ends.
        delimiter: Between fields.
        width: Fields of the header.
    """
    ahead: deque[str] = deque()  # lines that were looked at, and belong to later records
    number = 2
    while True:
        line = ahead.popleft() if ahead else next(lines, None)
        if line is None:
            return
        fields, reason, is_open = _parse([line], delimiter)
        whole = _continued(line, lines, ahead, delimiter, width) if is_open else None
        if whole is None:
            yield Record(number, fields, reason)
            number += 1
        else:
            fields, count = whole
            yield Record(number, fields, None)
            number += count
            for _ in range(count - 1):
                ahead.popleft()


def _continued(
    first: str, lines: Iterator[str], ahead: deque[str], delimiter: str, width: int
) -> tuple[list[str], int] | None:
    """The fields of a record that begins with an open quote, and its number of lines; None if it ends with its first."""
    taken, size, reopened = [first], len(first), 0
    # A cell can be open again after a line that closed one, but no more often than there are columns.
    while reopened < width and size <= MAX_CHARACTERS:
        if len(ahead) < len(taken):
            line = next(lines, None)
            if line is None:
                return None
            ahead.append(line)
        line = ahead[len(taken) - 1]
        taken.append(line)
        size += len(line)
        if line.strip() and len(_parse([line], delimiter)[0]) == width:
            return None
        if _ENDS_A_CELL.search(line):
            fields, reason, is_open = _parse(taken, delimiter)
            if not is_open:
                return (fields, len(taken)) if reason is None and len(fields) == width else None
            reopened += 1
    return None


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
