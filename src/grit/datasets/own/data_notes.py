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


class Note(NamedTuple):
    """One fact.

    Attributes:
        kind: ``salt``, ``mixture``, ``metal``, ``duplicates``, ``conflicts``, ``split`` or ``target``.
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


def notes_on_records(records: Records, standardise: str, task: TaskSpec, counted: str) -> list[Note]:
    """Salts, mixtures, metals, duplicates and conflicting labels.

    Args:
        records: All that became graphs.
        standardise: What was done to them.
        task: What is predicted.
        counted: What places count: line or entry.
    """
    return [*_notes_on_kinds(records, standardise, counted), *_notes_on_duplicates(records, task, counted)]


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
        f"{len(shared):,} of {held_out.size:,} molecules held out (val, test) are in train too ({counted}s {pairs}"
        f"{' ...' if len(shared) > _SHOWN else ''}): the split is used as it is given, and its figures look too good. "
        "--split random or scaffold keeps them together.",
    )


def _at(places: Sequence[int], members: Array) -> list[int]:
    return [places[member] for member in members.tolist()]


def _notes_on_kinds(records: Records, standardise: str, counted: str) -> list[Note]:
    found: dict[str, list[int]] = defaultdict(list)
    for kind, place in zip(records.kinds, records.places, strict=True):
        found[kind].append(place)
    what = {
        "salt": "salts or solvates, a molecule with counter-ions or solvents",
        "mixture": "mixtures of several molecules",
        "metal": "records with a metal",
    }
    done = {
        "none": "they are used whole; --standardise parent takes the neutral form of the largest part",
        "parent": "the neutral form of the largest part is used; --standardise none takes them whole",
    }[standardise]
    return [
        Note(
            kind,
            f"{len(found[kind]):,} of {len(records.kinds):,} molecules are {words} ({_listed(found[kind], counted)}): {done}.",
        )
        for kind, words in what.items()
        if found[kind]
    ]


def _notes_on_duplicates(records: Records, task: TaskSpec, counted: str) -> list[Note]:
    groups = groups_of(records.identities)
    sizes = np.bincount(groups, minlength=1)
    if not (sizes > 1).any():
        return []
    members: dict[int, list[int]] = defaultdict(list)
    for graph in np.flatnonzero(sizes[groups] > 1).tolist():
        members[int(groups[graph])].append(graph)
    rows = sum(map(len, members.values()))
    first = _at(records.places, np.array(next(iter(members.values()))))
    notes = [
        Note(
            "duplicates",
            f"{len(members):,} molecules occur more than once, in {rows:,} rows (for example {_listed(first, counted)}). All "
            "rows are used; random, scaffold and fold splits keep identical molecules together.",
        )
    ]
    conflict = _conflicts(records.y, list(members.values()), task)
    if conflict:
        worst = _listed(_at(records.places, np.array(conflict[0])), counted)
        what = (
            "labels"
            if task.kind != "regression"
            else "values that differ by more than a standard deviation of the column"
        )
        notes.append(
            Note(
                "conflicts",
                f"{len(conflict):,} of them have different {what} (for example {worst}); all are used as they are.",
            )
        )
    return notes


def _conflicts(y: Array, members: Sequence[Sequence[int]], task: TaskSpec) -> list[Sequence[int]]:
    """Identical molecules with conflicting targets, the worst first."""
    values = y.astype(np.float64)
    is_number = task.kind == "regression"
    scale = np.array([_spread(column[~np.isnan(column)]) if is_number else 0.0 for column in values.T])
    range_of: list[tuple[float, Sequence[int]]] = []
    for group in members:
        known = [(column[~np.isnan(column)], each) for column, each in zip(values[list(group)].T, scale, strict=True)]
        excess = [np.ptp(column) / (each or 1.0) for column, each in known if column.size > 1 and np.ptp(column) > each]
        if excess:
            range_of.append((float(max(excess)), group))
    return [group for _, group in sorted(range_of, key=lambda pair: -pair[0])]


def _spread(values: Array) -> float:
    return float(values.std()) if values.size else 0.0


def _listed(places: Sequence[int], counted: str) -> str:
    """As in: lines 3, 17, 20 ..."""
    chosen = list(dict.fromkeys(places))
    more = " ..." if len(chosen) > _SHOWN else ""
    return f"{counted}{'s' if len(chosen) > 1 else ''} {', '.join(map(str, chosen[:_SHOWN]))}{more}"
