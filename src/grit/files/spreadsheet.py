"""Cells of a CSV that a spreadsheet would run as formulas, written so that it takes them for text.

``=HYPERLINK(...)`` in a column of names would run when our output is opened. Such a cell gets a ``'`` in front, as in a
spreadsheet itself. `unguarded` takes it away again, so that our own output can be read as input.
"""

import re

_SIGNS = ("=", "+", "-", "@", "＝", "＋", "－", "＠")  # spreadsheets of some languages take the wide ones, too
_NUMBER_OR_SIGNS = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)(e[+-]?\d+)?|[=+\-@/\s]*", re.IGNORECASE | re.ASCII)


def guarded(cell: str) -> str:
    """A cell as it is written to a CSV: with ``'`` in front if it begins like a formula and is no plain number."""
    return f"'{cell}" if _is_formula(cell) else cell


def unguarded(cell: str) -> str:
    """The cell that `guarded` was given."""
    return cell[1:] if cell.startswith("'") and _is_formula(cell) else cell


def _is_formula(cell: str) -> bool:
    text = cell.lstrip("'").strip()
    return text.startswith(_SIGNS) and not _NUMBER_OR_SIGNS.fullmatch(text)
