"""The writer of SDF files."""

import re
from typing import BinaryIO

from grit.datasets.molecules.mol_blocks import mol_block_of
from grit.datasets.tables.writers.rows import Rows

_END, _BREAK = "$$$$", re.compile("\r\n|\r|\n")


def write_sdf(file: BinaryIO, rows: Rows) -> list[str]:
    """An SDF: the molecules with coordinates in the plane, the other columns as properties.

    A SMILES that cannot be read gives a molecule without atoms. A property cannot hold an empty line, or one that begins like
    the next property; such cells lose these, and the note counts them.

    Returns:
        What was lost, if anything.
    """
    header = list(rows.header)
    assert rows.smiles is not None
    molecule, title = header.index(rows.smiles), None if rows.titles is None else header.index(rows.titles)
    left_out = {title, molecule if rows.is_derived else None}
    names = {place: _BREAK.sub(" ", name) or "?" for place, name in enumerate(header) if place not in left_out}
    changed = 0
    for row in rows.read():
        block = mol_block_of(row[molecule]).partition("\n")[2]
        parts = ["" if title is None else _BREAK.sub(" ", row[title]), "\n", block]
        for place, name in names.items():
            if not row[place]:
                continue
            lines = _BREAK.split(row[place])
            kept = [f" {line}" if line.startswith((">", _END)) else line for line in lines if line]
            changed += "\n".join(kept) != row[place]
            parts += [f"> <{name}>\n", *(f"{line}\n" for line in kept), "\n"]
        file.write("".join([*parts, f"{_END}\n"]).encode())
    lost = f"{changed:,} cells lost empty lines, or got blanks before > and $$$$, because SDF cannot hold them."
    return [lost] if changed else []
