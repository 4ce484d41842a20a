"""The writer of Excel workbooks.

Written here, although there are libraries: it writes row by row in constant memory, and the same rows give the same bytes, so
that predictions that were interrupted and resumed can be compared with others. Text is never a formula in a workbook.
"""

import re
import zipfile
from collections.abc import Sequence
from typing import BinaryIO
from xml.sax.saxutils import escape

from grit.datasets.tables.workbook_xml import MAX_COLUMNS, MAX_ROWS
from grit.datasets.tables.writers.rows import Rows, column_kinds
from grit.errors import GritError

MAX_CHARACTERS = 32_767  # of a cell
_FIRST = (1980, 1, 1, 0, 0, 0)  # the time of every part: the earliest that a zip archive can hold
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_PARTS = {
    "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    f'<Override PartName="/xl/workbook.xml" ContentType="{_TYPE}.sheet.main+xml"/>'
    f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{_TYPE}.worksheet+xml"/></Types>',
    "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">'
    f'<Relationship Id="rId1" Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
    "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}">'
    '<sheets><sheet name="predictions" sheetId="1" r:id="rId1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">'
    f'<Relationship Id="rId1" Type="{_OFFICE}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
}
# What XML cannot hold, and what would be read as the code of a character.
_CODED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]|_(?=x[0-9A-Fa-f]{4}_)")


def write_workbook(file: BinaryIO, rows: Rows) -> list[str]:
    """An Excel workbook of one sheet: columns of numbers as numbers, others as text."""
    if len(rows.header) > MAX_COLUMNS:
        raise GritError(f"{len(rows.header):,} columns are more than Excel's {MAX_COLUMNS:,}; write .csv instead.")
    kinds = column_kinds(rows)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in _PARTS.items():
            with archive.open(_part(name), "w") as part:
                part.write((_HEAD + text).encode())
        with archive.open(_part("xl/worksheets/sheet1.xml"), "w", force_zip64=True) as sheet:
            sheet.write(f'{_HEAD}<worksheet xmlns="{_MAIN}"><sheetData>\n'.encode())
            sheet.write(_row(1, rows.header, ["text"] * len(kinds)))
            for number, row in enumerate(rows.read(), 2):
                if number > MAX_ROWS:
                    raise GritError(f"there are more rows than Excel's {MAX_ROWS:,}; write .csv or .parquet instead.")
                sheet.write(_row(number, row, kinds))
            sheet.write(b"</sheetData></worksheet>")
    return []


def _part(name: str) -> zipfile.ZipInfo:
    part = zipfile.ZipInfo(name, _FIRST)
    part.compress_type = zipfile.ZIP_DEFLATED
    return part


def _row(number: int, cells: Sequence[str], kinds: list[str]) -> bytes:
    texts = []
    for place, (cell, kind) in enumerate(zip(cells, kinds, strict=True)):
        if not cell:
            continue
        where = f'r="{_letters(place)}{number}"'
        if kind != "text":
            texts.append(f"<c {where}><v>{cell}</v></c>")
            continue
        if len(cell) > MAX_CHARACTERS:
            raise GritError(
                f"a cell of row {number} has {len(cell):,} characters, and Excel's have at most {MAX_CHARACTERS:,}; "
                "write .csv or .parquet instead."
            )
        coded = _CODED.sub(lambda found: f"_x{ord(found[0]):04X}_", cell)
        text = escape(coded, {"\r": "&#13;"})
        texts.append(f'<c {where} t="inlineStr"><is><t xml:space="preserve">{text}</t></is></c>')
    return f'<row r="{number}">{"".join(texts)}</row>\n'.encode()


def _letters(place: int) -> str:
    """The name of a column: A, B ... Z, AA, AB ..."""
    name, number = "", place + 1
    while number:
        number, letter = divmod(number - 1, 26)
        name = chr(ord("A") + letter) + name
    return name
