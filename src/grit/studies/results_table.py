"""Tables of results: Markdown to read, JSON to compute with."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

Cell = str | float | int | bool | None


@dataclass(frozen=True)
class ResultsTable:
    """Rows under named columns, with remarks.

    Attributes:
        title: One line.
        columns: Names of the columns.
        rows: One sequence of cells per row, as long as ``columns``; None is an empty cell.
        remarks: Sentences that belong to the table: what was measured, on what, and what it does not show.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    remarks: Sequence[str] = field(default_factory=tuple)

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"{self.title}: a row of {len(row)} cells under {len(self.columns)} columns: {row}")

    def markdown(self) -> str:
        """The table as Markdown, title and remarks included."""
        lines = [f"## {self.title}", "", _line(self.columns), _line(["---"] * len(self.columns))]
        lines += [_line([text(cell) for cell in row]) for row in self.rows]
        lines += [""] + [f"{remark}\n" for remark in self.remarks]
        return "\n".join(lines).rstrip() + "\n"

    def tree(self) -> dict[str, Any]:
        """The table as plain mappings: ``rows`` is a list of {column: cell}."""
        return {
            "title": self.title,
            "rows": [dict(zip(self.columns, row, strict=True)) for row in self.rows],
            "remarks": list(self.remarks),
        }

    def json(self) -> str:
        """`tree` as JSON."""
        return json.dumps(self.tree(), indent=1) + "\n"


def text(cell: Cell) -> str:
    """A cell as a reader wants it: yes / no, four significant digits, a dash where there is nothing."""
    if cell is None:
        return "–"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float):
        return f"{cell:.4g}"
    return f"{cell:,}" if isinstance(cell, int) else cell


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
