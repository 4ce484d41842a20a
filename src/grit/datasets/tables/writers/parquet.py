"""The writer of Parquet files, in groups of rows."""

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, BinaryIO

from grit.datasets.tables.parquet import pyarrow
from grit.datasets.tables.writers.rows import Rows, column_kinds
from grit.errors import GritError

_ROWS = 65_536  # of a group
_VALUES: dict[str, tuple[str, Callable[[str], Any]]] = {
    "whole": ("int64", int),
    "number": ("float64", float),
    "text": ("string", str),
}


def write_parquet(file: BinaryIO, rows: Rows) -> list[str]:
    """Parquet: columns of numbers as int64 or float64, others as text, blanks as null."""
    lib, parquet = pyarrow("lib"), pyarrow("parquet")
    twice = [name for name in rows.header if list(rows.header).count(name) > 1]
    if twice:
        raise GritError(
            f"there are two columns called {twice[0]!r}, which Parquet cannot hold; rename one, or write .csv."
        )
    kinds = column_kinds(rows)
    schema = lib.schema([(name, _VALUES[kind][0]) for name, kind in zip(rows.header, kinds, strict=True)])
    read = rows.read()

    def column(place: int, group: Sequence[Sequence[str]]) -> Any:
        _, value = _VALUES[kinds[place]]
        return lib.array([value(row[place]) if row[place] else None for row in group], schema.field(place).type)

    with parquet.ParquetWriter(file, schema) as writer:
        while group := list(islice(read, _ROWS)):
            columns = [column(place, group) for place in range(len(kinds))]
            writer.write_table(lib.Table.from_arrays(columns, schema=schema))
    return []
