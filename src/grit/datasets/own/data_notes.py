"""What a user should know about a table of molecules: sentences that a store keeps, so that a resumed fit can say them again."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from grit.datasets.molecules.standardise import RecordKind
from grit.graphs.chunk import Array
from grit.graphs.schema import TaskSpec
from grit.graphs.store import GraphStore

NOTES = "notes"
"""Under which name the manifest of a store keeps them."""

_SHOWN = 3  # examples in a sentence
_KINDS = {
    "salt": "salts or solvates, a molecule with counter-ions or solvents",
    "mixture": "mixtures of several molecules",
    "metal": "records with a metal",
}
_ABSENT = {"salt": "salts", "mixture": "mixtures", "metal": "metals", "duplicates": "duplicates"}


class Note(NamedTuple):
    """One fact.

    Attributes:
        kind: ``salt``, ``mixture``, ``metal``, ``duplicates``, ``conflicts``, ``absent``, ``split`` or ``target``.
        text: A sentence, with the option that changes what is done about it.
    """

    kind: str
    text: str


class Records(NamedTuple):
    """What was seen of the molecules that became graphs.

    Attributes:
        identities: Equal where molecules are the same.
        kinds: What each record is.
        places: Line of each, or its number in a list.
        y: Targets, (n, T).
    """

    identities: Sequence[bytes]
    kinds: Sequence[RecordKind]
    places: Sequence[int]
    y: Array


def notes_of(store: GraphStore) -> list[Note]:
    """What was found out when a store of molecules was made."""
    found = json.loads(store.manifest.built.get(NOTES, "[]"))
    return [Note(str(each["kind"]), str(each["text"])) for each in found]


def notes_json(notes: Sequence[Note]) -> str:
    """Notes as the manifest keeps them."""
    return json.dumps([note._asdict() for note in notes], ensure_ascii=False)


def groups_of(identities: Sequence[bytes]) -> Array:
    """(n,) whole numbers from 0, equal where identities are."""
    number: dict[bytes, int] = {}
    return np.array([number.setdefault(each, len(number)) for each in identities], dtype=np.int64)


def notes_on_records(
    records: Records,
    standardise: str,
    task: TaskSpec,
    counted: str,
    handled: Sequence[Note] = (),
    left_out: Sequence[tuple[RecordKind, int]] = (),
) -> list[Note]:
    """Salts, mixtures, metals, duplicates and conflicting labels.

    Args:
        records: All that became graphs.
        standardise: What was done to them.
        task: What is predicted.
        counted: What places count: line or entry.
        handled: What was said before, of duplicates that were merged or dropped.
        left_out: What these are, and where.
    """
    kinds = [*zip(records.kinds, records.places, strict=True), *left_out]
    found = [
        *handled,
        *_notes_on_kinds(sorted(kinds, key=lambda pair: pair[1]), standardise, counted),
        *_notes_on_duplicates(records, task, counted),
    ]
    return [*found, *_note_on_absence(found, len(kinds))]


def note_on_overlap(splits: Mapping[str, Array], groups: Array, places: Sequence[int], counted: str) -> Note | None:
    """Molecules of test or validation that training sees too, where somebody else made the split; None if there are none."""
    training = dict(zip(groups[splits["train"]].tolist(), _at(places, splits["train"]), strict=True))
    held_out = np.concatenate([splits["val"], splits["test"]])
    shared = [
        (training[group], place)
        for group, place in zip(groups[held_out].tolist(), _at(places, held_out), strict=True)
        if group in training
    ]
    if not shared:
        return None
    pairs = ", ".join(f"{first} and {second}" for first, second in shared[:_SHOWN])
    return Note(
        "split",
        f"{len(shared):,} of {held_out.size:,} molecules held out (val, test) are in train too ({counted_as(counted, 2)} {pairs}"
        f"{' ...' if len(shared) > _SHOWN else ''}): the split is used as it is given, and its figures look too good. "
        "--split random or scaffold keeps them together.",
    )


def _at(places: Sequence[int], members: Array) -> list[int]:
    return [places[member] for member in members.tolist()]


def _notes_on_kinds(kinds: Sequence[tuple[RecordKind, int]], standardise: str, counted: str) -> list[Note]:
    found: dict[str, list[int]] = defaultdict(list)
    for kind, place in kinds:
        found[kind].append(place)
    done = {
        "none": "they are used whole; --standardise parent takes the neutral form of the largest part",
        "parent": "the neutral form of the largest part is used; --standardise none takes them whole",
    }[standardise]
    return [
        Note(
            kind,
            f"{len(found[kind]):,} of {len(kinds):,} molecules are {words} ({listed(found[kind], counted)}): {done}.",
        )
        for kind, words in _KINDS.items()
        if found[kind]
    ]


def _note_on_absence(found: Sequence[Note], count: int) -> list[Note]:
    """What there is none of, so that a user knows that it was looked for."""
    seen = {note.kind for note in found}
    absent = [name for kind, name in _ABSENT.items() if kind not in seen]
    if not absent:
        return []
    names = " or ".join([", ".join(absent[:-1]), absent[-1]] if len(absent) > 1 else absent)
    return [Note("absent", f"There are no {names} among the {count:,} molecules.")]


def _notes_on_duplicates(records: Records, task: TaskSpec, counted: str) -> list[Note]:
    members = repeated(records.identities)
    if not members:
        return []
    rows = sum(map(len, members))
    first = listed(_at(records.places, np.array(members[0])), counted)
    notes = [
        Note(
            "duplicates",
            f"{len(members):,} molecules occur more than once, in {rows:,} rows (for example {first}). All rows are used; "
            "random, scaffold and fold splits keep identical molecules together. --duplicates merge makes one row of each.",
        )
    ]
    conflict = conflicts(records.y, members, task)
    if conflict:
        worst = listed(_at(records.places, np.array(conflict[0])), counted)
        notes.append(note_on_conflicts(len(conflict), worst, task, "all are used as they are"))
    return notes


def note_on_conflicts(count: int, worst: str, task: TaskSpec, done: str) -> Note:
    """Identical molecules whose targets do not agree.

    Args:
        count: How many.
        worst: Where the worst of them is.
        task: What is predicted.
        done: What is done about them.
    """
    kinds = {part.spec.kind == "regression" for part in task.by_target()}
    what = {
        (True,): "values that differ by more than a standard deviation of the column",
        (False,): "labels",
        (False, True): "labels, or values that differ by more than a standard deviation of the column",
    }[tuple(sorted(kinds))]
    return Note("conflicts", f"{count:,} of them have different {what} (for example {worst}): {done}.")


def repeated(identities: Sequence[bytes]) -> list[list[int]]:
    """The numbers of those that occur more than once, together, in the order of the first of each."""
    groups = groups_of(identities)
    sizes = np.bincount(groups, minlength=1)
    members: dict[int, list[int]] = defaultdict(list)
    for number in np.flatnonzero(sizes[groups] > 1).tolist():
        members[int(groups[number])].append(number)
    return list(members.values())


def conflicts(y: Array, members: Sequence[Sequence[int]], task: TaskSpec) -> list[Sequence[int]]:
    """Identical molecules with conflicting targets, the worst first: different classes, or numbers a deviation apart.

    Args:
        y: (n, T), NaN where missing.
        members: The molecules that are the same, by their numbers.
        task: What is predicted.
    """
    values = y.astype(np.float64)
    scale = [_spread(values[:, part.column], part.spec.kind == "regression") for part in task.by_target()]
    range_of: list[tuple[float, Sequence[int]]] = []
    for group in members:
        known = [(column[~np.isnan(column)], each) for column, each in zip(values[list(group)].T, scale, strict=True)]
        excess = [np.ptp(column) / (each or 1.0) for column, each in known if column.size > 1 and np.ptp(column) > each]
        if excess:
            range_of.append((float(max(excess)), group))
    return [group for _, group in sorted(range_of, key=lambda pair: -pair[0])]


def _spread(values: Array, is_number: bool) -> float:
    known = values[~np.isnan(values)]
    return float(known.std()) if is_number and known.size else 0.0


def listed(places: Sequence[int], counted: str) -> str:
    """As in: lines 3, 17, 20 ..."""
    chosen = list(dict.fromkeys(places))
    more = " ..." if len(chosen) > _SHOWN else ""
    return f"{counted_as(counted, len(chosen))} {', '.join(map(str, chosen[:_SHOWN]))}{more}"


def counted_as(counted: str, count: int) -> str:
    """As in: line, lines, entries."""
    return counted if count == 1 else {"entry": "entries"}.get(counted, f"{counted}s")
