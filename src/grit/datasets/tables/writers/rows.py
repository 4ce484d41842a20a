"""What a writer is given, and what the columns of it hold."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from grit.datasets.tables.numbers_as_text import is_plain_number, is_whole_number

_KINDS = ("whole", "number", "text")  # each holds the one before it


class Rows(NamedTuple):
    """A table of text, in rows that can be gone through more than once.

    Attributes:
        header: The names of the columns.
        read: Gives all rows from the first.
        smiles: The column of SMILES, if there is one.
        titles: The column with the titles of an SDF, if the table came from one.
        is_derived: Whether the SMILES were made from the structures of an SDF, so that the structures hold all there is.
    """

    header: Sequence[str]
    read: Callable[[], Iterator[Sequence[str]]]
    smiles: str | None = None
    titles: str | None = None
    is_derived: bool = False


def column_kinds(rows: Rows) -> list[str]:
    """For each column ``whole`` (numbers), ``number`` or ``text``; blanks say nothing.

    A column is of numbers only if all of its cells are numbers that lose nothing as such: ``007`` makes a column of text.
    """
    ranks = [0] * len(rows.header)
    is_blank = [True] * len(rows.header)
    for row in rows.read():
        for place, cell in enumerate(row):
            if cell and ranks[place] < 2:
                is_blank[place] = False
                if not is_plain_number(cell):
                    ranks[place] = 2
                elif not is_whole_number(cell):
                    ranks[place] = 1
    return ["text" if blank else _KINDS[rank] for rank, blank in zip(ranks, is_blank, strict=True)]
