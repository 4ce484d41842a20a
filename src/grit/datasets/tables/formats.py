"""The table of formats: which file ending is read how."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from grit.datasets.tables.json_lines import JsonLinesTable
from grit.datasets.tables.parquet import ParquetTable
from grit.datasets.tables.sdf import SdfTable
from grit.datasets.tables.smi import SmiTable
from grit.datasets.tables.table import NO_OPTIONS, ReadOptions, Table
from grit.datasets.tables.text_table import TextTable
from grit.datasets.tables.workbook import WorkbookTable
from grit.errors import GritError

FORMATS: dict[str, type[Table]] = {
    ".csv": TextTable,
    ".tsv": TextTable,
    ".tab": TextTable,
    ".txt": TextTable,
    ".xlsx": WorkbookTable,
    ".xlsm": WorkbookTable,
    ".parquet": ParquetTable,
    ".pq": ParquetTable,
    ".jsonl": JsonLinesTable,
    ".ndjson": JsonLinesTable,
    ".json": JsonLinesTable,
    ".sdf": SdfTable,
    ".sd": SdfTable,
    ".smi": SmiTable,
    ".smiles": SmiTable,
}
"""The reader of each file ending. A file with any other is read as text; gzipped ones are known by their first bytes."""

UNREAD: Mapping[str, str] = {
    ".xls": "an old Excel workbook. Save it as .xlsx or CSV",
    ".xlsb": "a binary Excel workbook. Save it as .xlsx or CSV",
    ".ods": "an OpenDocument table. Save it as .xlsx or CSV",
    ".feather": "a Feather file. Save it as .parquet or CSV",
    ".pkl": "a pickle, which is never opened, because opening it can run anything. Save it as .parquet or CSV",
    ".pickle": "a pickle, which is never opened, because opening it can run anything. Save it as .parquet or CSV",
    ".zip": "a zip archive. Unpack it first",
}
"""Endings of files that are not read, and what to do."""


def open_table(path: str | Path, columns: Sequence[str] = (), options: ReadOptions = NO_OPTIONS) -> Table:
    """Open a table by the ending of its file, such as ``.csv`` or ``.csv.gz``.

    Args:
        path: The file.
        columns: Those that are needed; each must be there exactly once.
        options: What the user says about the file; the rest is recognised, and said in the table's notes.
    """
    ending = ending_of(Path(path))
    if ending in UNREAD and Path(path).is_file():
        raise GritError(f"cannot read the table {str(path)!r}: it is {UNREAD[ending]}.")
    return FORMATS.get(ending, TextTable)(Path(path), columns, options)


def ending_of(path: Path) -> str:
    """What a file is called by its ending, in small letters, ``.gz`` not counted."""
    name = path.name.lower().removesuffix(".gz")
    return Path(name).suffix
