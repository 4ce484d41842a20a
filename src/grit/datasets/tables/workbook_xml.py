"""The parts of an Excel workbook (a zip archive of XML), read as streams.

Written here because a file that somebody sends may be anything. The usual reader lists rows without end if a file says that
its next row is number 10^12, takes a formula that was never computed for a blank, and keeps growing. Here every part has a
limit, a document type (which can expand without end) is refused, and each cell says what is wrong with it.
"""

import posixpath
import re
import zipfile
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import NamedTuple
from xml.parsers import expat

from grit.datasets.tables.numbers_as_text import is_plain_number, number_text

MAX_ROWS, MAX_COLUMNS = 1_048_576, 16_384  # Excel's own
MAX_PART = 2 << 30  # bytes of one part, unpacked
MAX_STRINGS = 512 << 20  # bytes of the table of strings, which is kept in memory
MAX_CELL = 1_000_000  # characters; Excel has 32,767
_BLOCK = 1 << 16
_DATE_FORMATS = {*range(14, 23), *range(27, 37), 45, 46, 47, *range(50, 59)}  # built in
_NOT_A_DATE = re.compile(r'"[^"]*"|\[(?!h|m|s)[^\]]*\]|[_\\*].|general', re.IGNORECASE)
_CODE = re.compile(r"_x([0-9A-Fa-f]{4})_")
_PLACE = re.compile(r"([A-Z]{1,3})([0-9]{1,7})")

_Start = Callable[[str, dict[str, str]], None]
_End = Callable[[str], None]
_Text = Callable[[str], None]


class DamagedWorkbook(ValueError):
    """What is wrong with a workbook."""


class SheetCell(NamedTuple):
    """A cell as text, and why it cannot be used, if so."""

    text: str
    reason: str | None = None


class Sheet(NamedTuple):
    """The name of a sheet, its part of the archive, and whether users see it."""

    name: str
    part: str
    is_visible: bool


class Workbook:
    """An Excel workbook.

    Attributes:
        sheets: In their order.
    """

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        targets = self._relations("_rels/.rels", "")
        main = targets.get("type:officeDocument", "xl/workbook.xml")
        folder, name = posixpath.split(main)
        targets = self._relations(f"{folder}/_rels/{name}.rels", folder)
        self.sheets: list[Sheet] = []
        self._has_1904 = False

        def start(tag: str, values: dict[str, str]) -> None:
            if tag == "sheet":
                part = targets.get(f"id:{values.get('id', '')}", "")
                self.sheets.append(Sheet(values.get("name", ""), part, values.get("state", "visible") == "visible"))
            if tag == "workbookPr":
                self._has_1904 = values.get("date1904", "0") in ("1", "true")

        for _ in self._parse(main, start=start):
            pass
        self._strings_part = targets.get("type:sharedStrings")
        self._styles_part = targets.get("type:styles")

    def rows(self, sheet: Sheet) -> Iterator[tuple[int, dict[int, SheetCell]]]:
        """The rows of a sheet that are not empty: number, from 1, and cells by the number of their column, from 0."""
        reader = _SheetReader(self._strings(), self._date_styles(), self._has_1904)
        for _ in self._parse(sheet.part, reader.start, reader.end, reader.text):
            yield from reader.take()

    def _strings(self) -> list[str]:
        strings: list[str] = []
        if self._strings_part is None:
            return strings
        pieces: list[str] = []
        within: list[str] = []

        def start(tag: str, values: dict[str, str]) -> None:
            within.append(tag)

        def end(tag: str) -> None:
            within.pop()
            if tag == "si":
                strings.append(_decoded("".join(pieces)))
                pieces.clear()

        def text(data: str) -> None:
            if within[-1] == "t" and "rPh" not in within:  # not how a word is pronounced
                pieces.append(data)

        for _ in self._parse(self._strings_part, start, end, text, limit=MAX_STRINGS):
            pass
        return strings

    def _date_styles(self) -> set[int]:
        """Numbers of the cell styles that show dates or times."""
        own: dict[int, bool] = {}
        styles: list[int] = []
        within: list[str] = []

        def start(tag: str, values: dict[str, str]) -> None:
            if tag == "numFmt":
                shown = _NOT_A_DATE.sub("", values.get("formatCode", "")[:1000])
                own[_number(values.get("numFmtId"))] = bool(re.search("[dmhys]", shown, re.IGNORECASE))
            if tag == "xf" and within and within[-1] == "cellXfs":
                styles.append(_number(values.get("numFmtId", "0")))
            within.append(tag)

        def end(tag: str) -> None:
            within.pop()

        if self._styles_part is not None:
            for _ in self._parse(self._styles_part, start, end):
                pass
        return {number for number, style in enumerate(styles) if own.get(style, style in _DATE_FORMATS)}

    def _relations(self, part: str, folder: str) -> dict[str, str]:
        """Parts by ``id:`` and ``type:`` of their relation; none if there is no such list."""
        targets: dict[str, str] = {}

        def start(tag: str, values: dict[str, str]) -> None:
            if tag == "Relationship" and values.get("TargetMode") != "External":
                target = posixpath.normpath(posixpath.join("/", folder, values.get("Target", ""))).lstrip("/")
                targets[f"id:{values.get('Id', '')}"] = target
                targets.setdefault(f"type:{values.get('Type', '').rpartition('/')[2]}", target)

        if part.lstrip("/") in self._archive.namelist():
            for _ in self._parse(part.lstrip("/"), start):
                pass
        return targets

    def _parse(
        self,
        part: str,
        start: _Start = lambda tag, values: None,
        end: _End = lambda tag: None,
        text: _Text = lambda data: None,
        limit: int | None = None,
    ) -> Iterator[None]:
        """Give the elements of a part to functions, without their namespaces, and stop after every block of it."""
        if part not in self._archive.namelist():
            raise DamagedWorkbook(f"its part {part!r} is missing")
        limit = MAX_PART if limit is None else limit
        if self._archive.getinfo(part).file_size > limit:
            raise DamagedWorkbook(f"its part {part!r} has more than {limit >> 20:,} MiB when it is unpacked")

        def refuse(*_: object) -> None:
            raise DamagedWorkbook(f"its part {part!r} has a document type, which no workbook has")

        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = refuse
        parser.StartElementHandler = lambda tag, values: start(
            _local(tag), {_local(name): value for name, value in values.items()}
        )
        parser.EndElementHandler = lambda tag: end(_local(tag))
        parser.CharacterDataHandler = text
        with self._archive.open(part) as file:
            while block := file.read(_BLOCK):
                parser.Parse(block, False)
                yield
        parser.Parse(b"", True)
        yield


class _SheetReader:
    """Turns the elements of a sheet into rows."""

    def __init__(self, strings: list[str], dates: set[int], has_1904: bool) -> None:
        self._strings, self._dates = strings, dates
        self._epoch = datetime(1904, 1, 1) if has_1904 else datetime(1899, 12, 30)
        self._done: list[tuple[int, dict[int, SheetCell]]] = []
        self._row, self._column = 0, -1
        self._cells: dict[int, SheetCell] = {}
        self._within: list[str] = []
        self._kind, self._style, self._has_formula = "n", 0, False
        self._pieces: list[str] = []
        self._size = 0

    def take(self) -> list[tuple[int, dict[int, SheetCell]]]:
        """The rows that are complete."""
        done, self._done = self._done, []
        return done

    def start(self, tag: str, values: dict[str, str]) -> None:
        """An element begins."""
        self._within.append(tag)
        if tag == "row":
            number = _number(values["r"]) if "r" in values else self._row + 1
            if not self._row < number <= MAX_ROWS:
                raise DamagedWorkbook(
                    f"row {number} comes after row {self._row}, and the last possible one is {MAX_ROWS:,}"
                )
            self._row, self._column = number, -1
        elif tag == "c":
            place = _PLACE.fullmatch(values["r"]) if "r" in values else None
            column = self._column + 1 if place is None else _column(place[1])
            if not self._column < column < MAX_COLUMNS:
                raise DamagedWorkbook(f"row {self._row} has the cell {values.get('r', '')!r} in the wrong place")
            self._column, self._kind, self._style = column, values.get("t", "n"), _number(values.get("s", "0"))
            self._has_formula, self._size = False, 0
            self._pieces.clear()
        elif tag == "f":
            self._has_formula = True

    def end(self, tag: str) -> None:
        """An element ends."""
        self._within.pop()
        if tag == "c":
            cell = self._cell("".join(self._pieces))
            if cell.text or cell.reason:
                self._cells[self._column] = cell
        elif tag == "row":
            if self._cells:
                self._done.append((self._row, self._cells))
            self._cells = {}

    def text(self, data: str) -> None:
        """Text inside an element."""
        if self._within and self._within[-1] in ("v", "t") and "c" in self._within and "rPh" not in self._within:
            self._size += len(data)
            if self._size > MAX_CELL:
                raise DamagedWorkbook(f"row {self._row} has a cell of more than {MAX_CELL:,} characters")
            self._pieces.append(data)

    def _cell(self, value: str) -> SheetCell:
        if self._has_formula and not value:
            if self._kind == "str":  # a formula whose result is an empty text
                return SheetCell("")
            return SheetCell("", "a formula without its value; open the workbook in a spreadsheet and save it")
        if self._kind == "e":
            return SheetCell(value, f"the error {value[:20]}")
        if not value:
            return SheetCell("")
        if self._kind == "s":
            number = _number(value)
            if number >= len(self._strings):
                raise DamagedWorkbook(f"row {self._row} uses the text {number}, and there are {len(self._strings)}")
            return SheetCell(self._strings[number])
        if self._kind == "b":
            return SheetCell("true" if value.strip() == "1" else "false")
        if self._kind == "n":
            return self._number_cell(value.strip())
        return SheetCell(_decoded(value))  # a text of its own, the result of a formula, or a date as text

    def _number_cell(self, value: str) -> SheetCell:
        try:
            number = float(value)
        except ValueError:
            raise DamagedWorkbook(f"row {self._row} has the number {value[:40]!r}") from None
        if self._style in self._dates:
            try:
                return SheetCell(_date_text(number, self._epoch))
            except OverflowError:
                return SheetCell(value, f"the number {value[:20]}, shown as a date, is none")
        return SheetCell(value if is_plain_number(value) else number_text(number))


def _date_text(days: float, epoch: datetime) -> str:
    """A date, a time of day, or both in ISO's form, from the days since an epoch."""
    if epoch.year < 1900 and 1 <= days < 60:  # Excel has a 29th of February 1900, as Lotus had
        days += 1
    moment = epoch + timedelta(milliseconds=round(days * 86_400_000))
    if 0 <= days < 1:
        return moment.time().isoformat()
    is_midnight = (moment.hour, moment.minute, moment.second, moment.microsecond) == (0, 0, 0, 0)
    return moment.date().isoformat() if is_midnight else moment.isoformat()


def _decoded(text: str) -> str:
    """Text in which ``_x000D_`` stands for a character that XML cannot hold."""
    return _CODE.sub(lambda code: chr(int(code[1], 16)), text) if "_x" in text else text


def _number(text: str | None) -> int:
    if text is None or not text.isdecimal() or len(text) > 9:
        raise DamagedWorkbook(f"{(text or '')[:40]!r} stands where a number should")
    return int(text)


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + ord(letter) - ord("A") + 1
    return number - 1


def _local(name: str) -> str:
    return name.rpartition(":")[2]
