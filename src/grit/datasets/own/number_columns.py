"""Columns of a table that hold numbers beside the targets: what a model reads of each row, and how much the row counts."""

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite, nan
from typing import NamedTuple

from grit.datasets.own.task_inference import is_missing
from grit.datasets.tables.table import TableRow
from grit.errors import GritError, shown

_LARGEST = 3e38  # of 32 bits, in which they are stored


class RowNumbers(NamedTuple):
    """What the columns say of one row.

    Attributes:
        features: A number for each column, NaN where it is missing.
        missing: Columns whose cell is blank.
        weight: How much the row counts; None where there is no such column.
        reason: Why the row cannot be used, if so.
    """

    features: tuple[float, ...] = ()
    missing: tuple[str, ...] = ()
    weight: float | None = None
    reason: str | None = None


def read_numbers(fields: Mapping[str, str], features: Sequence[str], weight: str | None = None) -> RowNumbers:
    """The numbers of one row.

    Args:
        fields: Its cells by column.
        features: Columns that the model reads; a blank is a missing number.
        weight: Column of weights; a blank is an error.
    """
    values, missing = [], []
    for name in features:
        cell = fields[name]
        if is_missing(cell):
            missing.append(name)
            values.append(nan)
            continue
        value = _number(cell)
        if value is None:
            return RowNumbers(reason=f"{name} is {shown(cell)}, expected a number (or a blank, if it is not known)")
        values.append(value)
    if weight is None:
        return RowNumbers(tuple(values), tuple(missing))
    counted = _number(fields[weight])
    if counted is None or counted < 0:
        return RowNumbers(
            reason=f"the weight {weight} is {shown(fields[weight])}, expected a number that is not negative"
        )
    return RowNumbers(tuple(values), tuple(missing), counted)


def check_number_columns(
    features: Sequence[str], weight: str | None, *, smiles: str, targets: Sequence[str], split: str | None
) -> None:
    """Raise where a column is used for two things, for instance a target that the model would read, too."""
    uses: dict[str, str] = {smiles: "the SMILES", **dict.fromkeys(targets, "a target")}
    if split is not None:
        uses[split] = "the split"
    for option, names in (("--features", features), ("--weights", () if weight is None else (weight,))):
        for name in names:
            if name in uses:
                raise GritError(f"{option} {name!r}: this column is {uses[name]} already.")
            uses[name] = option


def missing_numbers(rows: Iterable[TableRow], features: Sequence[str]) -> dict[str, int]:
    """How many cells of each column are blank, where some are; an error if a column holds no number at all."""
    numbers, missing = dict.fromkeys(features, 0), dict.fromkeys(features, 0)
    others: dict[str, str] = {}
    for row in rows:
        if row.reason is not None:
            continue
        for name in features:
            cell = row.fields[name]
            if is_missing(cell):
                missing[name] += 1
            elif _number(cell) is None:
                others.setdefault(name, cell)
            else:
                numbers[name] += 1
    for name, count in numbers.items():
        if not count:
            found = f"; it holds for example {shown(others[name])}" if name in others else ": all its cells are blank"
            raise GritError(f"the column {name!r} has no numbers{found}. --features takes columns of numbers.")
    return {name: count for name, count in missing.items() if count}


def _number(cell: str) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if isfinite(value) and abs(value) <= _LARGEST and "_" not in cell else None
