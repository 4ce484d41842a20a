"""Excel workbooks: one sheet of an .xlsx, streamed."""

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from xml.parsers.expat import ExpatError

from grit.datasets.tables.source import TableSource
from grit.datasets.tables.table import Record, Table, listed
from grit.datasets.tables.workbook_xml import DamagedWorkbook, Sheet, Workbook
from grit.errors import GritError

_DAMAGE = (
    DamagedWorkbook, ExpatError, zipfile.BadZipFile, zlib.error, EOFError, OSError, KeyError, UnicodeError,
    NotImplementedError,  # a way of packing that zipfile does not know
    RuntimeError,  # a part with a password
)  # fmt: skip


class WorkbookTable(Table):
    """A sheet of an Excel workbook: the first one that is not hidden, or the one that is asked for.

    Its first row with anything in it has the names of the columns. Lines are numbers of rows, as a spreadsheet shows them;
    empty rows below the last filled one are none. Formulas count with the value that the spreadsheet stored; a row that needs
    one without a value, or an error such as ``#N/A``, is listed. Dates become ISO text.
    """

    def _open(self, source: TableSource) -> list[str]:
        with self._reading():
            workbook = Workbook(zipfile.ZipFile(source.unpacked()))
        sheet = self._choose(workbook.sheets)
        self._rows = workbook.rows(sheet)
        with self._reading():
            first, cells = next(self._rows, (0, {}))
        if not cells:
            raise GritError(f"{str(self.path)!r}: the sheet {sheet.name!r} is empty. Expected the names of columns.")
        self._first = first
        return [cells[at].text.strip() if at in cells else "" for at in range(max(cells) + 1)]

    def _choose(self, sheets: list[Sheet]) -> Sheet:
        names, asked = [sheet.name for sheet in sheets], self.options.sheet
        if not sheets:
            raise GritError(f"{str(self.path)!r} has no sheets.")
        if asked is None:
            chosen = next((sheet for sheet in sheets if sheet.is_visible), sheets[0])
            if len(sheets) > 1:
                others = [name for name in names if name != chosen.name]
                self.notes.append(
                    f"{self.path.name}: the sheet {chosen.name!r} is read, not {listed(others)}; --sheet names another."
                )
            return chosen
        if asked in names:
            return sheets[names.index(asked)]
        if asked.isdecimal() and len(asked) < 6 and 1 <= int(asked) <= len(sheets):
            return sheets[int(asked) - 1]
        raise GritError(
            f"{str(self.path)!r} has no sheet {asked!r}; there are {listed(names)}. Give a name, or 1 for the first."
        )

    def _records(self) -> Iterator[Record]:
        expected = self._first + 1
        while True:
            with self._reading():
                number, cells = next(self._rows, (0, {}))
            if not cells:
                return
            for empty in range(expected, number):
                yield Record(empty, [], None)
            expected = number + 1
            width = max(len(self.header), max(cells) + 1)
            unusable = tuple((at, cell.reason) for at, cell in cells.items() if cell.reason is not None)
            yield Record(number, [cells[at].text if at in cells else "" for at in range(width)], None, unusable)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except GritError:
            raise
        except _DAMAGE as error:
            what = " ".join(str(error).split())[:200].rstrip(".")
            raise self._source.unreadable(f"it is not a sound Excel workbook ({what})") from None
