"""SDF: blocks of a molecule and its properties, each ended by ``$$$$``."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from grit.datasets.molecules.mol_blocks import smiles_of_mol_block
from grit.datasets.tables.source import TableSource
from grit.datasets.tables.table import Record, Table
from grit.datasets.tables.text_lines import TextEncoding, encoding_of, read_lines
from grit.errors import GritError

MAX_LINES = 100_000  # of a block
MAX_BLOCK_CHARACTERS = 10_000_000
_END = "$$$$"
_PROPERTY = re.compile(r">.*?<(.+)>")
_COUNTS = re.compile(r".*\bV[23]000\s*")
_SMILES_NAMES = ("smiles", "structure_smiles", "sdf_smiles", "sdf_structure_smiles")
_TITLE_NAMES = ("name", "title", "sdf_name", "sdf_title")


class _Block(NamedTuple):
    """A molecule as it stands in the file: the lines from the first to the one before ``$$$$``, and why it is unusable."""

    line: int
    lines: list[str]
    reason: str | None


class SdfTable(Table):
    """An SDF file. Each molecule becomes a SMILES in the first column, its title and its properties the others.

    The columns are the properties of all molecules, so that the file is gone through at once for their names. A molecule that
    RDKit cannot read is listed, with its line and its properties. So is one with a second molecule before the ``$$$$`` that
    ends it.
    """

    def _open(self, source: TableSource) -> list[str]:
        self._encoding = encoding_of(source, self.options.encoding)
        if self._encoding.note:
            self.notes.append(self._encoding.note)
        names: dict[str, int] = {}
        has_titles, is_empty = False, True
        for block in _blocks(source, self._encoding):
            is_empty = False
            has_titles = has_titles or bool(block.lines[0].strip())
            for line in block.lines:
                if line.startswith(">") and (found := _PROPERTY.match(line)):
                    names.setdefault(found[1], len(names))
        if is_empty:
            raise GritError(f"{str(self.path)!r} is empty. Expected molecules, each ended by a line $$$$.")
        self.molecules = next(name for name in _SMILES_NAMES if name not in names)
        title = next((name for name in _TITLE_NAMES if name not in names), None) if has_titles else None
        self.titles = title
        self._first_property = 1 if title is None else 2
        self._names = names
        self.notes.append(
            f"{self.path.name}: molecules are read from the structures, into the column {self.molecules!r}."
        )
        return [self.molecules, *([] if title is None else [title]), *names]

    def _records(self) -> Iterator[Record]:
        width = self._first_property + len(self._names)
        for block in _blocks(self._source, self._encoding):
            fields, unusable, reason = [""] * width, [], block.reason
            if reason is None:
                for name, value, is_new in _properties(block.lines):
                    place = self._first_property + self._names[name]
                    fields[place] = value
                    if not is_new:
                        unusable.append((place, "there twice"))
                if self._first_property == 2:
                    fields[1] = block.lines[0].strip()
                try:
                    fields[0] = smiles_of_mol_block("\n".join(_molecule(block.lines)))
                except GritError as error:
                    reason = str(error)
            yield Record(block.line, fields, reason, tuple(unusable))


def _blocks(source: TableSource, encoding: TextEncoding) -> Iterator[_Block]:
    """The molecules of a file, as they stand in it. Of one that is far too long the beginning."""
    number, first, size, too_long = 0, 1, 0, False
    lines: list[str] = []

    def block() -> _Block:
        several = sum(1 for line in lines if _COUNTS.fullmatch(line))
        reason = None
        if too_long:
            reason = f"longer than {MAX_LINES:,} lines or {MAX_BLOCK_CHARACTERS:,} characters; is a line $$$$ missing?"
        elif several > 1:
            reason = f"{several} molecules in lines {first} to {number}: a line $$$$ between them is missing"
        return _Block(first, lines or [""], reason)

    for line in read_lines(source, encoding):
        number += 1
        if line.startswith(_END):
            yield block()
            lines, first, size, too_long = [], number + 1, 0, False
            continue
        size += len(line)
        too_long = too_long or len(lines) >= MAX_LINES or size > MAX_BLOCK_CHARACTERS
        if not too_long:
            lines.append(line.rstrip("\r\n"))
    if any(line.strip() for line in lines):
        yield block()


def _molecule(lines: list[str]) -> list[str]:
    """The lines of a block before its properties."""
    ends = (at for at, line in enumerate(lines) if line.startswith("M  END") or _is_property(line))
    return lines[: next(ends, len(lines)) + 1]


def _properties(lines: list[str]) -> Iterator[tuple[str, str, bool]]:
    """The properties of a block: name, text, and whether the name is new. A text ends at an empty line."""
    seen: set[str] = set()
    name, text = None, list[str]()
    for line in [*lines, ""]:
        found = _PROPERTY.match(line) if line.startswith(">") else None
        if name is not None and (found is not None or not line):
            yield name, "\n".join(text), name not in seen
            seen.add(name)
            name = None
        if found is not None:
            name, text = found[1], []
        elif name is not None:
            text.append(line)


def _is_property(line: str) -> bool:
    return line.startswith(">") and _PROPERTY.match(line) is not None
