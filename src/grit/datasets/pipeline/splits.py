"""Dividing a data set into train, val and test."""

import hashlib
import heapq
import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from grit.datasets.tables.text_table import TextTable
from grit.errors import GritError
from grit.files.ordinary_file import check_ordinary
from grit.graphs.chunk import Array

SPLITS = ("train", "val", "test")
SPLIT_NAMES = {
    "train": "train",
    "training": "train",
    "val": "val",
    "valid": "val",
    "validation": "val",
    "dev": "val",
    "test": "test",
}
"""What a part may be called in a table -> its name."""


def random_split(
    count: int,
    seed: int,
    fractions: tuple[float, float, float] = (0.8, 0.1, 0.1),
    groups: Array | None = None,
) -> dict[str, Array]:
    """A seeded random division; each part ascending, none empty if there are at least three graphs, or groups.

    Args:
        count: Graphs.
        seed: Of the division.
        fractions: Of train, val and test.
        groups: (count,) whole numbers; graphs with the same number stay together. Where all differ, the division is the one
            without groups.
    """
    order = np.random.default_rng(seed).permutation(count)
    if groups is not None:
        return _cut_groups(order, groups, fractions)
    return {name: np.sort(part) for name, part in _cut(order, fractions).items()}


def validation_from(train: Array, seed: int, groups: Array) -> tuple[Array, Array]:
    """A tenth of the training graphs becomes validation: the rest, and that tenth.

    Args:
        train: (n,) numbers of graphs.
        seed: Of the draw.
        groups: Of all graphs; graphs of one group stay together.
    """
    order = np.random.default_rng(seed).permutation(train.size)
    rest, chosen = _take(order, _numbered(groups[train]), max(1, round(0.1 * train.size)))
    if not rest.size or not chosen.size:
        raise GritError(
            f"validation cannot be drawn from train: its {train.size} molecules are fewer than two different ones. Name a "
            "validation part (val) too."
        )
    return np.sort(train[rest]), np.sort(train[chosen])


def group_folds(groups: Array, folds: int, seed: int) -> Array:
    """The fold of each graph, (n,) from 0: graphs of one group are in one fold, and folds are of about one size.

    Args:
        groups: (n,) whole numbers, equal where graphs must stay together.
        folds: How many, 2 or more.
        seed: Another one gives other folds.
    """
    numbers = _numbered(groups)
    sizes = np.bincount(numbers)
    if folds < 2:
        raise GritError(f"there must be at least 2 folds, got {folds}.")
    if sizes.size < folds:
        raise GritError(
            f"{folds} folds cannot be made of {numbers.size} molecules in {sizes.size} groups: identical molecules, and with "
            "--split scaffold those of one scaffold, stay together. Take fewer folds, or --split random."
        )
    shuffled = np.random.default_rng(seed).permutation(sizes.size)
    by_size = shuffled[np.argsort(-sizes[shuffled], kind="stable")]
    heap = [(0, fold) for fold in range(folds)]  # graphs so far: the emptiest fold takes the next group
    fold_of = np.zeros(sizes.size, dtype=np.int64)
    for group in by_size.tolist():
        filled, fold = heapq.heappop(heap)
        fold_of[group] = fold
        heapq.heappush(heap, (filled + int(sizes[group]), fold))
    return fold_of[numbers]


def fold_split(count: int, folds: int, seed: int, groups: Array | None = None) -> list[dict[str, Array]]:
    """Cross-validation: for each fold the splits in which it is the test part, and a tenth of the rest validation.

    Args:
        count: Graphs.
        folds: How many, 2 or more.
        seed: Of folds and validation.
        groups: As in `random_split`.
    """
    together = np.arange(count) if groups is None else groups
    fold_of, splits = group_folds(together, folds, seed), []
    for fold in range(folds):
        train, val = validation_from(np.flatnonzero(fold_of != fold), seed, together)
        splits.append({"train": train, "val": val, "test": np.flatnonzero(fold_of == fold)})
    return splits


def scaffold_split(
    scaffolds: Sequence[str],
    fractions: tuple[float, float, float] = (0.8, 0.1, 0.1),
    groups: Array | None = None,
) -> dict[str, Array]:
    """Molecules with the same Bemis-Murcko scaffold stay together: the commonest scaffolds train, rare ones test.

    Sets of one scaffold are taken from large to small into train until it is full, then val, then test, so that the test set
    holds scaffolds never seen in training. Those of one size are ordered by a hash of the scaffold: many tables are sorted, by
    class for example, and taking them as they come would give a test set of one class. Molecules without rings form one set.

    Args:
        scaffolds: Of each molecule, as SMILES.
        fractions: Of train, val and test.
        groups: As in `random_split`.
    """
    names = list(scaffolds) if groups is None else _one_scaffold_per_group(scaffolds, groups)
    members: dict[str, list[int]] = defaultdict(list)
    for number, scaffold in enumerate(names):
        members[scaffold].append(number)
    count = len(names)
    parts: dict[str, list[int]] = {name: [] for name in SPLITS}
    capacity = {"train": fractions[0] * count, "val": fractions[1] * count}
    by_size = sorted(members, key=lambda name: (-len(members[name]), hashlib.sha256(name.encode()).digest()))
    for group in (members[name] for name in by_size):
        for name in ("train", "val"):
            if len(parts[name]) + len(group) <= capacity[name] + 1e-9:
                parts[name] += group
                break
        else:
            parts["test"] += group
    empty = [name for name, chosen in parts.items() if not chosen]
    if empty:
        raise GritError(
            f"the scaffold split leaves {' and '.join(empty)} empty: the molecules ({count}) have too few different scaffolds "
            f"({len(members)}). Use a random split (--split random)."
        )
    return {name: np.sort(np.array(chosen, dtype=np.int64)) for name, chosen in parts.items()}


def scaffold_groups(scaffolds: Sequence[str], groups: Array) -> Array:
    """(n,) whole numbers, equal for molecules of one scaffold, and for those of one group."""
    return np.unique(np.array(_one_scaffold_per_group(scaffolds, groups)), return_inverse=True)[1].reshape(-1)


def named_split(names: Sequence[str], lines: Sequence[int], where: str) -> dict[str, Array]:
    """From one name per graph: train, val (valid, validation, dev) or test; its line serves to say where it is wrong."""
    parts: dict[str, list[int]] = {name: [] for name in SPLITS}
    for number, (name, line) in enumerate(zip(names, lines, strict=True)):
        split = SPLIT_NAMES.get(name.strip().lower())
        if split is None:
            raise GritError(f"{where}: line {line} says {name!r}, expected train, val or test.")
        parts[split].append(number)
    return {name: np.array(members, dtype=np.int64) for name, members in parts.items()}


class SplitFile(NamedTuple):
    """The members of splits by their number, which counts each ``row`` (0 is the first below the header) or ``line``."""

    path: Path
    sha256: str
    counted: str
    members: dict[str, list[int]]


def read_split_file(path: Path, *, has_lines: bool) -> SplitFile:
    """Read a split file.

    Args:
        path: JSON ``{"train": [0, 1, ...], "val": [...], "test": [...]}`` with numbers of rows; or a CSV with the columns
            ``row``, the same number, or ``line``, the line in the file, and ``split``.
        has_lines: Whether the source is a text file, so that its lines have numbers.
    """
    try:
        check_ordinary(path)
        file = _json_split(path) if path.suffix == ".json" else _csv_split(path, has_lines)
    except GritError:
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise GritError(f"cannot read the split file {str(path)!r}: {error}") from None
    repeated = [number for number, count in Counter(chain.from_iterable(file.members.values())).items() if count > 1]
    if repeated:
        raise GritError(f"{str(path)!r} names the {file.counted} {repeated[0]} twice.")
    return file


def file_split(
    file: SplitFile, rows: Sequence[int], lines: Sequence[int] = (), places: Mapping[int, int] | None = None
) -> dict[str, Array]:
    """From a file that names rows of the source. Graphs whose row it does not name belong to no split.

    Args:
        file: From `read_split_file`.
        rows: Number of the row of each graph.
        lines: Line of each graph, where the source is a text file.
        places: Line of every row of the source by its number, also of rows without a graph; if given, a row that the source
            does not have is an error.
    """
    counted = file.counted
    graph_of = {int(number): graph for graph, number in enumerate(lines if counted == "line" else rows)}
    if places is not None:
        known = set(places.values() if counted == "line" else places)
        absent = [number for number in chain.from_iterable(file.members.values()) if number not in known]
        if absent:
            raise GritError(
                f"{str(file.path)!r} names the {counted} {absent[0]}, which the data does not have: its {counted}s are "
                f"{min(known)} to {max(known)} ({len(absent)} such in all)."
            )
    return {
        name: np.array([graph_of[each] for each in file.members.get(name, []) if each in graph_of], dtype=np.int64)
        for name in SPLITS
    }


def _csv_split(path: Path, has_lines: bool) -> SplitFile:
    table = TextTable(path)
    counted = "line" if has_lines and "line" in table.header else "row"
    table.need([counted, "split"])
    split: dict[str, list[int]] = defaultdict(list)
    for entry in table.rows():
        if entry.reason == "empty line":
            continue
        name = SPLIT_NAMES.get(entry.fields["split"].lower())
        if entry.reason is not None or name is None or not re.fullmatch(r"\d{1,18}", entry.fields[counted]):
            reason = entry.reason or f"expected a {counted} number and train, val or test"
            raise GritError(f"{str(path)!r}: line {entry.line}: {reason}.")
        split[name].append(int(entry.fields[counted]))
    return SplitFile(path, table.sha256, counted, split)


def _json_split(path: Path) -> SplitFile:
    text = path.read_bytes()
    content = json.loads(text.decode())
    if not isinstance(content, dict):
        raise GritError(f'{str(path)!r} must be of the form {{"train": [...], "val": [...], "test": [...]}}.')
    split: dict[str, list[int]] = {}
    for name, rows in content.items():
        known = SPLIT_NAMES.get(name.lower())
        if known is None or not isinstance(rows, list) or not all(type(row) is int for row in rows):
            raise GritError(f"{str(path)!r}: {name!r} must be train, val or test with a list of row numbers.")
        split[known] = [*split.get(known, []), *rows]
    return SplitFile(path, hashlib.sha256(text).hexdigest(), "row", split)


def _cut(order: Array, fractions: tuple[float, float, float]) -> dict[str, Array]:
    count = order.size
    if count < 3:
        raise GritError(f"{count} graphs cannot be divided into train, val and test; at least 3 are needed.")
    val, test = _held_out(count, fractions)
    train = max(1, count - val - test)
    return dict(zip(SPLITS, np.split(order, [train, train + val]), strict=True))


def _held_out(count: int, fractions: tuple[float, float, float]) -> tuple[int, int]:
    return max(1, round(fractions[1] * count)), max(1, round(fractions[2] * count))


def _cut_groups(order: Array, groups: Array, fractions: tuple[float, float, float]) -> dict[str, Array]:
    numbers = _numbered(groups)
    different = int(numbers.max(initial=-1)) + 1
    if different < 3:
        raise GritError(
            f"{order.size} graphs, {different} of them different, cannot be divided into train, val and test: identical ones "
            "stay together, and at least 3 different ones are needed."
        )
    val_size, test_size = _held_out(order.size, fractions)
    rest, test = _take(order, numbers, test_size)
    train, val = _take(rest, numbers, val_size)
    return {"train": np.sort(train), "val": np.sort(val), "test": np.sort(test)}


def _take(order: Array, numbers: Array, size: int) -> tuple[Array, Array]:
    """Whole groups from the end of an order, ``size`` graphs if that can be: those that stay, and those taken.

    A group that is larger than what is still wanted stays. If all are, the smallest is taken.
    """
    sizes = np.bincount(numbers[order])
    ahead: list[int] = list(dict.fromkeys(numbers[order[::-1]].tolist()))  # groups from the end of the order
    chosen, wanted = [], size
    for group in ahead:
        if wanted == 0:
            break
        if sizes[group] <= wanted:
            chosen.append(group)
            wanted -= int(sizes[group])
    if not chosen and ahead:
        chosen = [min(ahead, key=lambda group: int(sizes[group]))]
    if len(chosen) == len(ahead):
        chosen = chosen[:-1]
    taken = np.isin(numbers[order], chosen)
    return order[~taken], order[taken]


def _numbered(groups: Array) -> Array:
    """Groups as consecutive whole numbers from 0, (n,)."""
    return np.unique(groups, return_inverse=True)[1].reshape(-1)


def _one_scaffold_per_group(scaffolds: Sequence[str], groups: Array) -> list[str]:
    """The scaffold of the first molecule of each group for all of it."""
    first: dict[int, str] = {}
    return [first.setdefault(group, scaffold) for group, scaffold in zip(groups.tolist(), scaffolds, strict=True)]
