"""Numbers with a decimal comma, as spreadsheets of many countries write them: ``1,5`` and ``1.234,5``.

A column has them if its numbers show it beyond doubt. ``1,500`` alone does not: it may be one and a half, or fifteen hundred.
"""

import re
from collections.abc import Iterable, Sequence

from grit.errors import GritError

_WITH_COMMA = re.compile(r"[+-]?(?:[0-9]{1,3}(?:\.[0-9]{3})+|[0-9]*),[0-9]+(?:[eE][+-]?[0-9]+)?")
_WHOLE = re.compile(r"[+-]?[0-9]+")
_PERHAPS_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2}(?:,[0-9]{3})+")
_PERHAPS_GROUPED = re.compile(r"[+-]?[1-9][0-9]{0,2}(?:\.[0-9]{3})+")
_MOSTLY = 0.9  # of the cells, for a column with a few misprints


def with_point(text: str) -> str:
    """A number with a decimal comma as one with a point; every other text as it is."""
    return text.replace(".", "").replace(",", ".") if _WITH_COMMA.fullmatch(text) else text


def why_unclear(text: str) -> str | None:
    """Why a cell of a column with decimal commas cannot be read, if so."""
    if not _PERHAPS_GROUPED.fullmatch(text):
        return None
    return f"{text!r} may be {text.replace('.', '')} or a number with a decimal point, where the others have decimal commas"


def has_comma(text: str) -> bool:
    """Whether a text may be a number with a decimal comma."""
    return _WITH_COMMA.fullmatch(text.strip()) is not None


def comma_columns(rows: Iterable[Sequence[str]], width: int) -> frozenset[int]:
    """The columns whose numbers have decimal commas, judged by some rows.

    Nearly all cells that are not blank are numbers with a comma or whole numbers, and at least one cannot be
    a number in thousands.
    """
    filled, numbers, sure = [0] * width, [0] * width, [False] * width
    for row in rows:
        for place, cell in enumerate(row[:width]):
            text = cell.strip()
            if not text:
                continue
            filled[place] += 1
            numbers[place] += has_comma(text) or _WHOLE.fullmatch(text) is not None
            sure[place] |= has_comma(text) and _PERHAPS_THOUSANDS.fullmatch(text) is None
    return frozenset(place for place in range(width) if sure[place] and numbers[place] >= _MOSTLY * filled[place])


def decimal_named(name: str | None) -> str | None:
    """What a user says about decimals: comma or point."""
    if name is not None and name not in ("comma", "point"):
        raise GritError(f"--decimal is comma or point, got {name!r}.")
    return name
