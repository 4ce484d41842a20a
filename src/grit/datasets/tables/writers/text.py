"""Writers of text: CSV, TSV and JSON lines."""

import codecs
import csv
import json
from functools import partial
from typing import BinaryIO

from grit.datasets.tables.writers.rows import Rows, column_kinds
from grit.files.spreadsheet import guarded


def _write_separated(file: BinaryIO, rows: Rows, delimiter: str) -> list[str]:
    writer = csv.writer(codecs.getwriter("utf-8")(file), delimiter=delimiter)
    writer.writerow(map(guarded, rows.header))
    writer.writerows(map(guarded, row) for row in rows.read())
    return []


write_csv = partial(_write_separated, delimiter=",")
"""CSV; cells that a spreadsheet would run as formulas are written as text, see `grit.files.spreadsheet`."""

write_tsv = partial(_write_separated, delimiter="\t")
"""CSV with tabs."""


def write_smi(file: BinaryIO, rows: Rows) -> list[str]:
    """A file of SMILES: a line with the names of the columns, tabs between cells, the SMILES first and called smiles."""
    assert rows.smiles is not None
    place = list(rows.header).index(rows.smiles)
    others = [number for number in range(len(rows.header)) if number != place]
    order = [place, *others]
    header = ["smiles", *(rows.header[number] for number in others)]
    return write_tsv(file, Rows(header, lambda: ([row[number] for number in order] for row in rows.read())))


def write_json_lines(file: BinaryIO, rows: Rows) -> list[str]:
    """JSON lines: columns of numbers as numbers, blanks as null."""
    is_text = [kind == "text" for kind in column_kinds(rows)]
    names = [json.dumps(name, ensure_ascii=False) for name in rows.header]
    for row in rows.read():
        cells = (
            f"{name}: {(json.dumps(cell, ensure_ascii=False) if text else cell) if cell else 'null'}"
            for name, cell, text in zip(names, row, is_text, strict=True)
        )
        file.write(f"{{{', '.join(cells)}}}\n".encode())
    return []
