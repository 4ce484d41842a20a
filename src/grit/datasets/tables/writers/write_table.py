"""The table of writers: which file ending is written how."""

import gzip
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, cast

from grit.datasets.tables.formats import ending_of
from grit.datasets.tables.parquet import pyarrow
from grit.datasets.tables.writers.parquet import write_parquet
from grit.datasets.tables.writers.rows import Rows
from grit.datasets.tables.writers.sdf import write_sdf
from grit.datasets.tables.writers.text import write_csv, write_json_lines, write_smi, write_tsv
from grit.datasets.tables.writers.workbook import write_workbook
from grit.errors import GritError
from grit.files.whole_file import whole_file

WRITERS: dict[str, Callable[[BinaryIO, Rows], list[str]]] = {
    ".csv": write_csv,
    ".tsv": write_tsv,
    ".tab": write_tsv,
    ".xlsx": write_workbook,
    ".parquet": write_parquet,
    ".pq": write_parquet,
    ".jsonl": write_json_lines,
    ".ndjson": write_json_lines,
    ".sdf": write_sdf,
    ".sd": write_sdf,
    ".smi": write_smi,
}
"""The writer of each file ending; it gives sentences about what the format could not hold. ``.gz`` behind it packs the file."""

_WITH_MOLECULES = {".sdf", ".sd", ".smi"}


def check_output(out: Path, *, has_molecules: bool = True) -> None:
    """Raise if a table cannot be written there, before the work is done.

    Args:
        out: The file to write.
        has_molecules: Whether the table has a column of SMILES.
    """
    if out.is_dir():
        raise GritError(f"cannot write {str(out)!r}: it is a folder. Name the file to write, such as predictions.csv.")
    if out.exists() and not out.is_file():
        raise GritError(
            f"cannot write {str(out)!r}: it is not an ordinary file. Name the file to write, such as predictions.csv."
        )
    if not out.parent.is_dir():
        raise GritError(f"cannot write {str(out)!r}: there is no folder {str(out.parent)!r}.")
    ending = ending_of(out)
    if ending not in WRITERS:
        raise GritError(
            f"cannot write {str(out)!r}: {f'the ending {ending!r}' if ending else 'without an ending it'} names no format. "
            f"Expected one of {', '.join(WRITERS)}, with .gz behind it to pack the file."
        )
    if ending in _WITH_MOLECULES and not has_molecules:
        raise GritError(
            f"cannot write {str(out)!r}: there are no SMILES to write. Name a .csv or .parquet file instead."
        )
    if WRITERS[ending] is write_parquet:
        pyarrow("parquet")


class _Onward(io.RawIOBase):
    """A file that can only be written to: a packed one says that it can be sought, and cannot."""

    def __init__(self, file: gzip.GzipFile) -> None:
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return self._file.write(data)


def write_table(out: Path, rows: Rows) -> list[str]:
    """Write a table in the format that the ending of the file names, whole or not at all.

    The same rows give the same bytes.

    Returns:
        Sentences about what the format could not hold.
    """
    check_output(out, has_molecules=rows.smiles is not None)
    write = WRITERS[ending_of(out)]
    try:
        with whole_file(out) as file:
            if not out.name.lower().endswith(".gz"):
                return write(file, rows)
            with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
                return write(cast("BinaryIO", _Onward(packed)), rows)
    except OSError as error:
        raise GritError(f"cannot write {str(out)!r}: {error.strerror or error}.") from error
