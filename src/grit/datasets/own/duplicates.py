"""Molecules that occur more than once in a table: all used, merged into one row, all but the first dropped, or refused.

Two rows are the same if their molecules are (see `grit.datasets.molecules.standardise.identity`, after standardising) and the
numbers that a model reads beside the molecule are. They are merged only within one part of a split that the user gives:
otherwise labels of the test part would go into training.
"""

import hashlib
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from grit.datasets.molecules.featurisers import FEATURISERS
from grit.datasets.molecules.smiles import read_smiles
from grit.datasets.molecules.standardise import RecordKind, identity, kind_of_record
from grit.datasets.own.data_notes import Note, conflicts, counted_as, listed, note_on_conflicts, repeated
from grit.datasets.pipeline.featurise_rows import ROWS_PER_PIECE, MoleculeRow, batched, in_order
from grit.errors import GritError
from grit.graphs.chunk import Array
from grit.graphs.schema import TaskSpec
from grit.graphs.store_format import SkippedRow

DUPLICATES = ("keep", "merge", "drop", "error")
"""What ``--duplicates`` can be."""

_SAME = "identical to"  # how the reason of every row begins that another row stands for
_SHOWN = 5  # groups in an error


class Resolved(NamedTuple):
    """What becomes of molecules that occur more than once.

    Attributes:
        rows: Rows that are changed, by their number: with merged targets, or with the reason why they are not used.
        notes: What the user should know.
        left_out: What the records of rows that are not used are, and where.
    """

    rows: Mapping[int, MoleculeRow]
    notes: Sequence[Note] = ()
    left_out: Sequence[tuple[RecordKind, int]] = ()


@dataclass(frozen=True)
class DuplicateRule:
    """What to do about identical molecules.

    Attributes:
        how: An entry of `DUPLICATES`.
        featuriser: An entry of `FEATURISERS`, which says how molecules are standardised.
        task: What is predicted.
        counted: What places count: line or entry.
        part_of: The part of the user's own split that each row belongs to, by its number; nothing if there is none.
    """

    how: str
    featuriser: str
    task: TaskSpec
    counted: str
    part_of: Mapping[int, str]

    def resolve(self, rows: Callable[[], Iterable[MoleculeRow]], processes: int) -> Resolved:
        """Find identical molecules, and decide what becomes of their rows.

        Args:
            rows: Gives all rows, each time that it is called.
            processes: How many parse molecules.
        """
        if self.how == "keep":
            return Resolved({})
        keys: dict[int, bytes] = {}
        kinds: dict[int, RecordKind] = {}
        usable = (row for row in rows() if row.reason is None)
        for found in in_order(_Identify(self.featuriser), batched(usable, ROWS_PER_PIECE), processes):
            keys |= {row.row: self._key(row, same.identity) for row, same in found if same is not None}
            kinds |= {row.row: same.kind for row, same in found if same is not None and same.kind}
        members = repeated(list(keys.values()))
        if not members:
            return Resolved({})
        numbers = list(keys)
        wanted = {numbers[each] for group in members for each in group}
        kept, y = dict[int, MoleculeRow](), []
        for row in rows():
            if row.row in keys:
                y.append(row.y)
            if row.row in wanted:
                kept[row.row] = row
        groups = [[kept[numbers[each]] for each in group] for group in members]
        conflicting = conflicts(np.array(y, dtype=np.float64).reshape(len(y), -1), members, self.task)
        decided = self._decided(groups, [[kept[numbers[each]] for each in group] for group in conflicting])
        left_out = [
            (kinds.get(number, ""), _place(row)) for number, row in decided.rows.items() if row.reason is not None
        ]
        return decided._replace(left_out=left_out)

    def _key(self, row: MoleculeRow, same: bytes) -> bytes:
        part = self.part_of.get(row.row, "") if self.how == "merge" else ""
        numbers = struct.pack(f"{len(row.features)}d", *row.features)
        return hashlib.blake2b(same + numbers + part.encode(), digest_size=16).digest()

    def _decided(self, groups: list[list[MoleculeRow]], conflicting: list[list[MoleculeRow]]) -> Resolved:
        count = sum(map(len, groups))
        found = f"{len(groups):,} molecules occur more than once, in {count:,} rows"
        if self.how == "error":
            places = "; ".join(listed([_place(row) for row in group], self.counted) for group in groups[:_SHOWN])
            raise GritError(
                f"{found}: {places}{'; ...' if len(groups) > _SHOWN else ''}. --duplicates merge makes one row of each, drop "
                "takes the first, keep uses all."
            )
        changed: dict[int, MoleculeRow] = {}
        at_odds = {group[0].row for group in conflicting}
        tied = []
        for group in groups:
            if self.how == "drop":
                reason = f"{_SAME} {self.counted} {_place(group[0])}, which is used (--duplicates drop)"
                changed |= {row.row: row._replace(reason=reason) for row in group[1:]}
                continue
            merged, why = merge(group, self.task)
            if merged is None:
                tied.append(group)
                for row in group:
                    others = listed([_place(each) for each in group if each is not row], self.counted)
                    changed[row.row] = row._replace(reason=f"{_SAME} {others}; {why}")
                continue
            more = f"; {why}" if why else "; their values conflict" if group[0].row in at_odds else ""
            changed[merged.row] = merged
            into = f"{_SAME} {self.counted} {_place(merged)}, with which it is merged{more}"
            changed |= {row.row: row._replace(reason=into) for row in group[1:]}
        return Resolved(changed, self._notes(found, groups, conflicting, tied))

    def _notes(
        self,
        found: str,
        groups: list[list[MoleculeRow]],
        conflicting: list[list[MoleculeRow]],
        tied: list[list[MoleculeRow]],
    ) -> list[Note]:
        first = listed([_place(row) for row in groups[0]], self.counted)
        kinds = {part.spec.kind == "regression" for part in self.task.by_target()}
        how = " or ".join([*(["the mean"] if True in kinds else []), *(["the majority"] if False in kinds else [])])
        done = {"merge": f"each becomes one row, with {how} of its targets", "drop": "the first row of each is used"}
        skipped = "the list of skipped rows names the others (--duplicates keep uses all)"
        notes = [Note("duplicates", f"{found} (for example {first}): {done[self.how]}; {skipped}.")]
        if conflicting:
            worst = listed([_place(row) for row in conflicting[0]], self.counted)
            used = {"merge": f"{how} is used", "drop": "the first row is used"}[self.how]
            notes.append(note_on_conflicts(len(conflicting), worst, self.task, used))
        if tied:
            rows = sum(map(len, tied))
            where = listed([_place(row) for row in tied[0]], self.counted)
            notes.append(
                Note(
                    "conflicts",
                    f"{len(tied):,} of them have no majority, as two classes are equally frequent (for example {where}): none "
                    f"of their {rows:,} {counted_as('row', rows)} is used.",
                )
            )
        return notes


def check_duplicates(how: str) -> None:
    """Raise if there is no such way."""
    if how not in DUPLICATES:
        raise GritError(f"duplicates must be one of {', '.join(DUPLICATES)}, got {how!r}.")


def is_duplicate(row: SkippedRow) -> bool:
    """Whether a row is not used because another one stands for it, or contradicts it."""
    return row.reason.startswith(_SAME)


def merge(group: Sequence[MoleculeRow], task: TaskSpec) -> tuple[MoleculeRow | None, str]:
    """One row for several of the same molecule, and what should be known of it.

    A number is the mean of those that are known, a class the commonest; rows count by their weights. A class without a
    majority is missing.

    Returns:
        The first row with the merged targets and the mean weight, None if no target is left; and a reason, if there is one.
    """
    weights = np.array([1.0 if row.weight is None else row.weight for row in group])
    y = np.array([row.y for row in group], dtype=np.float64)  # (n, T)
    values, reasons = [], []
    for part in task.by_target():
        known = ~np.isnan(y[:, part.column])
        found, share = y[known, part.column], weights[known]
        share = share if share.any() else np.ones(found.size)
        if not found.size:
            values.append(np.nan)
        elif part.spec.kind == "regression":
            values.append(float(np.average(found, weights=share)))
        else:
            value, why = _majority(found, share, part.spec)
            values.append(value)
            reasons += [f"{part.spec.targets[0]}: {why}"] if why else []
    if all(value != value for value in values):
        return None, "; ".join(reasons)
    weight = None if group[0].weight is None else float(weights.mean())
    return group[0]._replace(y=tuple(values), weight=weight), "; ".join(reasons)


def _majority(labels: Array, share: Array, spec: TaskSpec) -> tuple[float, str]:
    votes = np.bincount(labels.astype(np.int64), weights=share)
    most = np.flatnonzero(np.isclose(votes, votes.max()))
    names = spec.classes or ("0", "1")
    if most.size > 1:
        return np.nan, f"{' and '.join(repr(names[each]) for each in most)} are equally frequent, so it is not used"
    if np.unique(labels).size == 1:
        return float(most[0]), ""
    count = int((labels == most[0]).sum())
    return float(most[0]), f"{names[int(most[0])]!r} by majority, {count} of {labels.size} rows"


def _place(row: MoleculeRow) -> int:
    return row.row if row.line is None else row.line


class _Known(NamedTuple):
    identity: bytes
    kind: RecordKind


@dataclass(frozen=True)
class _Identify:
    """What a worker does: rows -> each with what is known of its molecule, None if it cannot be read."""

    featuriser: str

    def __call__(self, rows: list[MoleculeRow]) -> list[tuple[MoleculeRow, _Known | None]]:
        return [(row._replace(smiles=""), self._known(row.smiles)) for row in rows]

    def _known(self, smiles: str) -> _Known | None:
        try:
            written = read_smiles(smiles)
            return _Known(identity(FEATURISERS[self.featuriser].molecule(written)), kind_of_record(written))
        except GritError:
            return None  # the reason is found again when its graph is made
