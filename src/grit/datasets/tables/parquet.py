"""Parquet files, read in pieces with pyarrow."""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from grit.datasets.tables.numbers_as_text import number_text
from grit.datasets.tables.source import TableSource
from grit.datasets.tables.table import Record, Table
from grit.errors import GritError

_ROWS = 1024  # decoded at a time


class ParquetTable(Table):
    """A Parquet file. Rows are counted from 1, as data frames do not have a line for the header.

    Numbers become the shortest text that means the same number, null and NaN a blank, dates ISO text. A row that needs a cell
    of another kind (a list, a picture) is listed.
    """

    def _open(self, source: TableSource) -> list[str]:
        with self._reading():
            self._file = pyarrow("parquet").ParquetFile(source.unpacked(), pre_buffer=False)
            self._kinds = [field.type for field in self._file.schema_arrow]
            names = [str(field.name) for field in self._file.schema_arrow]
        if not names:
            raise GritError(f"{str(self.path)!r} has no columns.")
        return names

    def expected_rows(self) -> int | None:
        """As many as the file says."""
        return int(self._file.metadata.num_rows)

    def _records(self) -> Iterator[Record]:
        number = 0
        batches = self._file.iter_batches(_ROWS, use_threads=False)
        while True:
            with self._reading():
                batch = next(batches, None)
                columns = [] if batch is None else [_texts(column) for column in batch.columns]
            if batch is None:
                return
            unusable = tuple(
                (place, f"{kind}, not text or a number")
                for place, (kind, column) in enumerate(zip(self._kinds, columns, strict=True))
                if column is None
            )
            filled = [[""] * batch.num_rows if column is None else column for column in columns]
            for row in zip(*filled, strict=True):
                number += 1
                yield Record(number, list(row), None, unusable)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """What pyarrow cannot read is a `GritError`."""
        errors = pyarrow("lib").ArrowException, OSError, UnicodeDecodeError, OverflowError, ValueError
        try:
            yield
        except GritError:
            raise
        except errors as error:
            what = " ".join(str(error).split())[:200].rstrip(".")
            raise self._source.unreadable(f"it is not a sound Parquet file ({what})") from None


def pyarrow(module: str) -> Any:
    """A module of pyarrow, which is optional."""
    try:
        return importlib.import_module(f"pyarrow.{module}")
    except ModuleNotFoundError as error:
        raise GritError("Parquet needs pyarrow: pip install 'torch-grit[tables]'. Or save the table as CSV.") from error


def _texts(column: Any) -> list[str] | None:
    """The cells of a column as text; None if they are of a kind that has none."""
    types = pyarrow("types")
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if types.is_null(kind):
        return [""] * len(column)
    if types.is_floating(kind):
        if types.is_float64(kind):
            return ["" if value is None else number_text(value) for value in column.to_pylist()]
        # The shortest text that gives the same number of 16 or 32 bits, as numpy writes it.
        numbers = column.to_numpy(zero_copy_only=False)
        return ["" if value is None or value != value else str(value).removesuffix(".0") for value in numbers]
    is_text = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    if not is_text:
        is_castable = (
            types.is_boolean(kind) or types.is_integer(kind) or types.is_decimal(kind) or types.is_binary(kind)
        )
        is_castable = is_castable or types.is_large_binary(kind) or types.is_date(kind) or types.is_time(kind)
        if not is_castable and not types.is_timestamp(kind):
            return None
        try:
            column = column.cast("string")
        except pyarrow("lib").ArrowInvalid:  # bytes that are not text
            return None
    return ["" if value is None else value for value in column.to_pylist()]
