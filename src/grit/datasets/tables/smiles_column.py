"""Which column of a table holds SMILES, by its name."""

import re
from shlex import quote
from typing import NamedTuple

from grit.datasets.tables.table import Table, listed
from grit.errors import GritError

# From the surest to the least sure; compared without case, with "_" for blanks, dots and hyphens.
_NAMES = (
    "smiles",
    "smile",
    "smiles_string",
    "canonical_smiles",
    "isomeric_smiles",
    "mol_smiles",
    "molecule_smiles",
    "compound_smiles",
    "smi",
    "structure",
    "mol",
    "molecule",
)

_LIKELY = re.compile("smi|struct|compound|molecule", re.IGNORECASE)


class SmilesColumn(NamedTuple):
    """The column of SMILES, and a sentence about it if others could have been meant."""

    name: str
    note: str | None


def smiles_column(table: Table) -> SmilesColumn:
    """The column that holds SMILES: the one that the format names, or by its name.

    That is one of a list, or one that ends or begins with the word smiles. Of several the surest name is taken, then the
    leftmost; the note names the others.
    """
    if table.molecules is not None:
        return SmilesColumn(table.molecules, None)
    ranks = {name: _rank(name) for name in table.header}
    candidates = sorted((name for name, rank in ranks.items() if rank is not None), key=lambda name: ranks[name] or 0)
    if not candidates:
        likely = next((name for name in table.header if _LIKELY.search(name)), "NAME")
        raise GritError(
            f"{str(table.path)!r} has no column called smiles. Name the one that holds them with --smiles, as in "
            f"--smiles {quote(likely)} (smiles= in Python); there are {listed(table.header)}. "
            "If these are values, the line with the names of the columns is missing."
        )
    name, *others = candidates
    note = (
        f"SMILES are taken from the column {name!r}, not from {listed(others)}; --smiles names another."
        if others
        else None
    )
    return SmilesColumn(name, note)


def is_smiles_name(name: str) -> bool:
    """Whether a column with this name holds SMILES, by its name."""
    return _rank(name) is not None


def _rank(name: str) -> int | None:
    words = re.sub(r"[\s.\-]+", "_", name.strip().lower())
    if words in _NAMES:
        return _NAMES.index(words)
    return len(_NAMES) if re.search(r"(^|_)smiles(_|$)", words) else None
