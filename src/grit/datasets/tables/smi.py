"""Files of SMILES: in each line a SMILES, a blank and a name; or a table with tabs, if the first line names columns."""

from collections.abc import Iterator
from itertools import chain

from grit.datasets.tables.smiles_column import is_smiles_name
from grit.datasets.tables.source import TableSource
from grit.datasets.tables.table import Record
from grit.datasets.tables.text_lines import MAX_CHARACTERS, encoding_of, read_lines
from grit.datasets.tables.text_table import TextTable

_COLUMNS = ["smiles", "name"]


class SmiTable(TextTable):
    """A file of SMILES.

    Without names of columns each line is a SMILES and, after a blank or a tab, a name. A first line whose first word is a usual
    name of a column of SMILES names the columns: then tabs are between cells, which may be quoted.
    """

    def _open(self, source: TableSource) -> list[str]:
        encoding = encoding_of(source, self.options.encoding)
        first = next(read_lines(source, encoding), "")
        words = first.split()
        self._has_header = bool(words) and is_smiles_name(words[0].strip('"'))
        if self._has_header and ("\t" in first or len(words) == 1):
            header = super()._open(source)
            self.molecules = header[0]
            return header
        self._is_plain = True
        if encoding.note:
            self.notes.append(encoding.note)
        self._lines = read_lines(source, encoding)
        header = [*words[:1], " ".join(words[1:])] if self._has_header else _COLUMNS
        self._first = 1 + self._has_header
        if self._has_header:
            next(self._lines)
        self.molecules = header[0]
        return header

    _is_plain = False

    def _records(self) -> Iterator[Record]:
        if not self._is_plain:
            yield from super()._records()
            return
        for number, line in enumerate(self._lines, self._first):
            reason = f"longer than {MAX_CHARACTERS:,} characters" if len(line) > MAX_CHARACTERS else None
            words = line.split(maxsplit=1) if reason is None else []
            yield Record(number, [*chain((word.strip() for word in words), [""] * 2)][:2], reason)
