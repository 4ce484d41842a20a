"""From rows with molecules to a store: what is seen of them on the way, their split, and what the user is told.

`grit.datasets.own.molecule_tables` reads the rows.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from grit.datasets.molecules.standardise import RecordKind
from grit.datasets.own.choose_split import SplitChoice
from grit.datasets.own.data_notes import NOTES, Note, Records, groups_of, notes_json, notes_on_records
from grit.datasets.own.duplicates import DuplicateRule, is_duplicate
from grit.datasets.pipeline.featurise_rows import Featurise, MoleculeRow, Piece, molecule_pieces
from grit.datasets.pipeline.write_store import Collected, Description, RowProgress, collect
from grit.errors import shown
from grit.graphs.chunk import Array
from grit.graphs.store import GraphStore
from grit.graphs.store_format import SkippedRow


class MoleculeStore(NamedTuple):
    """Molecules as graphs, and the Morgan fingerprint of each in packed bits, (n, 256), if that was asked for."""

    store: GraphStore
    fingerprints: Array | None


class Making(NamedTuple):
    """Where a store goes, how it is made, and who is told."""

    out: Path | None
    overwrite: bool
    processes: int
    progress: RowProgress | None
    say: Callable[[str], None] | None


class Dividing(NamedTuple):
    """How to split, and for each row its line, None where it has none, and the name of its split."""

    choice: SplitChoice
    places: Mapping[int, tuple[int | None, str]]
    where: str

    def parts(self) -> dict[int, str]:
        """The part that each row belongs to, where the user says it."""
        return self.choice.parts(self.places)


class Chemistry(NamedTuple):
    """What is done to molecules at the door, and what is known of them there.

    Attributes:
        standardise: An entry of `grit.datasets.molecules.standardise.STANDARDISATIONS`.
        duplicates: An entry of `grit.datasets.own.duplicates.DUPLICATES`.
        notes: What the user should know of the targets.
    """

    standardise: str
    duplicates: str
    notes: Sequence[Note] = ()


@dataclass
class Seen:
    """What is kept of the pieces that go by."""

    rows: list[Array] = field(default_factory=list)
    y: list[Array] = field(default_factory=list)
    identities: list[bytes] = field(default_factory=list)
    kinds: list[RecordKind] = field(default_factory=list)
    scaffolds: list[str] = field(default_factory=list)
    fingerprints: list[Array] = field(default_factory=list)

    def add(self, piece: Piece) -> None:
        """Take note of a piece."""
        self.rows.append(piece.rows)
        self.y += [] if piece.chunk is None else [piece.chunk.y]
        self.identities += piece.identities
        self.kinds += piece.kinds
        self.scaffolds += piece.scaffolds
        self.fingerprints += [] if piece.fingerprints is None else [piece.fingerprints]

    @property
    def all_rows(self) -> Array:
        """Number of the row of each graph, (n,)."""
        return np.concatenate([np.zeros(0, dtype=np.int64), *self.rows])

    @property
    def packed_fingerprints(self) -> Array:
        """Of each graph, (n, 256)."""
        return np.concatenate(self.fingerprints)

    def records(self, dividing: Dividing) -> Records:
        """What notes are made of."""
        rows = self.all_rows.tolist()
        places = [row if dividing.places[row][0] is None else dividing.places[row][0] for row in rows]
        return Records(
            self.identities, self.kinds, [place for place in places if place is not None], np.concatenate(self.y)
        )


def make_store(
    rows: Callable[[], Iterable[MoleculeRow]],
    description: Description,
    dividing: Dividing,
    featurise: Featurise,
    chemistry: Chemistry,
    making: Making,
) -> tuple[MoleculeStore, Seen]:
    """Store molecules.

    Args:
        rows: Gives all rows, each time that it is called.
        description: For the manifest.
        dividing: How they are split.
        featurise: What is computed of each.
        chemistry: What is done about salts and the like, and about identical molecules.
        making: Where the store goes.

    Returns:
        The store, and what was seen of the molecules in it.
    """
    seen, notes = Seen(), list(chemistry.notes)
    task, counted = description.task, description.counted
    assert description.molecules is not None
    rule = DuplicateRule(chemistry.duplicates, description.molecules, task, counted, dividing.parts())
    resolved = rule.resolve(rows, making.processes)

    def pieces() -> Iterator[Piece]:
        changed = (resolved.rows.get(row.row, row) for row in rows())
        for piece in molecule_pieces(changed, featurise, making.processes):
            seen.add(piece)
            yield piece

    def choose(found: Collected) -> dict[str, Array]:
        records = seen.records(dividing)
        notes.extend(notes_on_records(records, chemistry.standardise, task, counted, resolved.notes, resolved.left_out))
        choice, places, where = dividing
        splits, more = choice.choose(found.rows, groups_of(seen.identities), seen.scaffolds, places, where)
        notes.extend(more)
        return splits

    out, overwrite, _, progress, say = making
    store = collect(
        pieces(),
        description,
        choose,
        out=out,
        overwrite=overwrite,
        progress=progress,
        found_out=lambda: {NOTES: notes_json(notes)},
    )
    _tell(store, notes, say)
    return MoleculeStore(store, seen.packed_fingerprints if seen.fingerprints else None), seen


def _tell(store: GraphStore, notes: Sequence[Note], say: Callable[[str], None] | None) -> None:
    """What was found out; without anybody to tell, only what spoils results, which nobody should have to look for."""
    tell = say if say is not None else partial(warnings.warn, stacklevel=5)
    for note in notes:
        if say is not None or note.kind == "split":
            tell(note.text)
    in_a_split = np.unique(np.concatenate([*store.splits.values(), np.zeros(0, dtype=np.int64)])).size
    if in_a_split < len(store):
        tell(f"{len(store) - in_a_split:,} of {len(store):,} molecules are in no split, and will not be used.")
    unusable = unusable_rows(store)
    if unusable and say is None:  # a command tells it with the place of the list
        tell(
            f"{len(unusable):,} of {store.manifest.rows:,} rows could not be used; store.skipped lists them. "
            f"The first: {shown(unusable[0].content)}: {unusable[0].reason}"
        )


def unusable_rows(store: GraphStore) -> list[SkippedRow]:
    """Rows that gave no graph, without duplicates, which were left out because that was asked for."""
    return [row for row in store.skipped if not is_duplicate(row)]
