"""The table of formats: which file ending is read how."""

from collections.abc import Sequence
from pathlib import Path

from grit.datasets.tables.table import Table
from grit.datasets.tables.text_table import TextTable

FORMATS: dict[str, type[Table]] = {
    ".csv": TextTable,
    ".tsv": TextTable,
    ".tab": TextTable,
    ".txt": TextTable,
}
"""The reader of each file ending. A file with any other is read as text; gzipped ones are known by their first bytes."""


def open_table(path: str | Path, columns: Sequence[str] = ()) -> Table:
    """Open a table by the ending of its file, such as ``.csv`` or ``.csv.gz``.

    Args:
        path: The file.
        columns: Those that are needed; each must be there exactly once.
    """
    return FORMATS.get(ending_of(Path(path)), TextTable)(Path(path), columns)


def ending_of(path: Path) -> str:
    """What a file is called by its ending, in small letters, ``.gz`` not counted."""
    name = path.name.lower().removesuffix(".gz")
    return Path(name).suffix
