"""What a column of a table is: numbers to predict, or classes? Decided from its values, stated, and open to being told."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf, isfinite, log, nan
from typing import Literal

import numpy as np

from grit.datasets.tables.decimal_comma import has_comma
from grit.datasets.tables.table import MISSING
from grit.errors import GritError, shorten, shown
from grit.graphs.chunk import Array
from grit.graphs.schema import MIXED_LOSS, TaskSpec

Cell = str | float
"""A target as it comes: the text of a table, blank where it is missing, or a number, NaN where it is."""

TaskKind = Literal["regression", "binary", "multiclass", "multilabel", "mixed"]
TASK_KINDS = ("regression", "binary", "multiclass", "multilabel", "mixed")

_MANY = 1000  # distinct values after which they are no longer kept
_MAX_CLASSES = 100
_MAX_NUMBERED_CLASSES = 10
_MOSTLY = 0.9  # of the values, for a column with a few misprints to pass for numbers


@dataclass
class ColumnFacts:
    """What was seen of one target column.

    Attributes:
        name: Of the column.
        present: Values that are not missing.
        numbers: How many of them are numbers.
        whole: How many are whole numbers, written as such.
        distinct: Different values, of which no more than a thousand or so are kept.
        counts: How often each of these occurs.
        low: The smallest number.
        high: The largest.
        total: The sum of the numbers.
        positive: How many of them are above 0.
        log_total: The sum of the natural logarithms of those.
    """

    name: str
    present: int = 0
    numbers: int = 0
    whole: int = 0
    distinct: set[str] = field(default_factory=set)
    counts: dict[str, int] = field(default_factory=dict)
    low: float = inf
    high: float = -inf
    total: float = 0.0
    positive: int = 0
    log_total: float = 0.0

    def see(self, cell: Cell) -> None:
        """Take note of one value."""
        if is_missing(cell):
            return
        self.present += 1
        text = cell_text(cell)
        if len(self.distinct) <= _MANY:
            self.distinct.add(text)
        if text in self.distinct:
            self.counts[text] = self.counts.get(text, 0) + 1
        number = _number(cell)
        if number is not None:
            self.numbers += 1
            self.low, self.high, self.total = min(self.low, number), max(self.high, number), self.total + number
            if number > 0:
                self.positive += 1
                self.log_total += log(number)
            # 2.0 and 2e0 look measured, 2 may be a class
            self.whole += cell.strip().lstrip("+-").isdecimal() if isinstance(cell, str) else isinstance(cell, int)

    @property
    def is_numeric(self) -> bool:
        """Whether the values are numbers, up to a few misprints."""
        return self.present > 0 and self.numbers >= _MOSTLY * self.present

    @property
    def is_label(self) -> bool:
        """Whether all values are 0 or 1."""
        return {_number(text) for text in self.distinct} <= {0.0, 1.0} and self.numbers == self.present

    @property
    def is_coded(self) -> bool:
        """Whether the values are the whole numbers 1 and 2, or -1 and 1, by which tables often name two classes."""
        return self.whole == self.present and {_number(text) for text in self.distinct} in ({1.0, 2.0}, {-1.0, 1.0})

    def spellings(self) -> dict[str, list[str]]:
        """The different words, those together that differ only in case or spaces, the commonest first."""
        found: dict[str, list[str]] = {}
        for text in sorted(self.distinct, key=lambda text: (-self.counts.get(text, 0), text)):
            found.setdefault(_folded(text), []).append(text)
        return found

    def with_one_spelling(self) -> "ColumnFacts":
        """The same with the commonest spelling of each word alone."""
        return replace(self, distinct={names[0] for names in self.spellings().values()})

    @property
    def is_numbered_class(self) -> bool:
        """Whether the values are a few consecutive whole numbers from 0 or 1."""
        if self.whole != self.present or len(self.distinct) > _MANY:
            return False
        values = sorted({int(text) for text in self.distinct})
        few = 3 <= len(values) <= _MAX_NUMBERED_CLASSES
        return few and values[0] in (0, 1) and values[-1] == values[0] + len(values) - 1


@dataclass(frozen=True)
class Targets:
    """A task, and how the cells of a row become numbers for it.

    Attributes:
        task: What is predicted.
        why: One sentence that says how it was decided.
    """

    task: TaskSpec
    why: str

    def parse(self, cells: Iterable[Cell]) -> tuple[tuple[float, ...], str | None]:
        """The targets of a row, NaN where missing, and the reason why they cannot be used, if so."""
        values = []
        for name, target, cell in zip(self.task.targets, self._each, cells, strict=True):
            if is_missing(cell):
                values.append(nan)
                continue
            value = target._value(cell)
            if value is None:
                numbers = target.task.kind == "regression"
                expected = (
                    f"a number{_comma_hint(cell_text(cell))}" if numbers else f"one of {', '.join(target._classes[:5])}"
                )
                return (), f"{name} is {shown(cell_text(cell))}, expected {expected}"
            if not _fits(value):
                return (
                    (),
                    f"{name} is {shown(cell_text(cell))}, beyond 32-bit numbers (about 1e-45 to 3e38); rescale the column",
                )
            values.append(value)
        if all(value != value for value in values):
            return (), "no target has a value"
        return tuple(values), None

    @cached_property
    def _each(self) -> "tuple[Targets, ...]":
        """Of targets of several kinds, each by itself."""
        return tuple(Targets(part, "") for part in self.task.parts) or (self,) * len(self.task.targets)

    @property
    def _classes(self) -> tuple[str, ...]:
        return self.task.classes or ("0", "1")

    def _value(self, cell: Cell) -> float | None:
        number = _number(cell)
        if self.task.kind == "regression":
            return number
        if cell in self._classes:
            return float(self._classes.index(str(cell)))
        # 1.0 for the class 1
        matches = [place for place, name in enumerate(self._classes) if number is not None and _number(name) == number]
        # Active for the class active, unless both are classes
        matches = matches or [
            place for place, name in enumerate(self._classes) if _folded(name) == _folded(cell_text(cell))
        ]
        return float(matches[0]) if len(matches) == 1 else None


def is_missing(cell: Cell) -> bool:
    """Whether a cell stands for no value."""
    return cell.strip().lower() in MISSING if isinstance(cell, str) else cell != cell


def cell_text(cell: Cell) -> str:
    """A cell as a table would hold it."""
    return str(int(cell)) if isinstance(cell, bool) else str(cell)


def cells_of(values: Array) -> list[list[Cell]]:
    """The rows of an array of targets, (n, T): numbers where it holds numbers, else texts, blank for None."""
    if values.dtype.kind in "iufb":
        return values.tolist()  # type: ignore[no-any-return]
    return [["" if each is None or each != each else cell_text(each) for each in row] for row in values.tolist()]


def infer_targets(
    columns: Sequence[ColumnFacts], kind: TaskKind | None = None, *, ignore_case: bool = False
) -> Targets:
    """Decide the task from what was seen of its columns, or check the one that was named.

    Args:
        columns: What was seen of them.
        kind: The task, if it is named.
        ignore_case: Whether words that differ only in case or spaces are one class.
    """
    if ignore_case:
        columns = [column.with_one_spelling() for column in columns]
    if not columns:
        raise GritError("name at least one target column.")
    for column in columns:
        if column.present == 0:
            raise GritError(f"the target column {column.name!r} has no values.")
    if kind is not None and kind not in TASK_KINDS:
        raise GritError(f"unknown task {kind!r}; there are {', '.join(TASK_KINDS)}.")
    chosen, why = (kind, "as asked") if kind is not None else _decide(columns)
    names = tuple(column.name for column in columns)
    if chosen == "mixed":
        return _each_for_itself(columns)
    if chosen == "regression":
        _need(all(column.is_numeric for column in columns), columns, "numbers", chosen)
        task = TaskSpec(kind="regression", targets=names, loss="l1", metric="mae", standardise=True)
    elif chosen == "multilabel":
        _need(all(column.is_label for column in columns), columns, "0 or 1 everywhere", chosen)
        task = TaskSpec(kind="multilabel", targets=names, loss="cross_entropy", metric="auroc")
    else:
        if len(columns) > 1:
            raise GritError(f"{chosen} has one target column, got {len(columns)}: {', '.join(names)}.")
        classes = _class_names(columns[0])
        _need(len(classes) == 2 if chosen == "binary" else len(classes) >= 2, columns, "two classes or more", chosen)
        metric: Literal["auroc", "accuracy"] = "auroc" if chosen == "binary" else "accuracy"
        task = TaskSpec(kind=chosen, targets=names, classes=classes, loss="cross_entropy", metric=metric)
    return Targets(task, why)


def _each_for_itself(columns: Sequence[ColumnFacts]) -> Targets:
    """Targets of several kinds, each decided by its own column."""
    if len(columns) < 2:
        raise GritError(f"mixed is for several targets of different kinds; there is only {columns[0].name!r}.")
    parts = tuple(infer_targets([column]) for column in columns)
    task = TaskSpec(
        kind="mixed",
        targets=tuple(column.name for column in columns),
        loss=MIXED_LOSS,
        metric="skill",
        parts=tuple(part.task for part in parts),
    )
    why = "; ".join(f"{part.task.targets[0]}: {part.task.kind}, {part.why}" for part in parts)
    return Targets(task, why)


def _decide(columns: Sequence[ColumnFacts]) -> tuple[TaskKind, str]:
    if len(columns) > 1:
        if all(column.is_label for column in columns):
            return "multilabel", f"{len(columns)} columns of 0, 1 and blanks"
        labels = [column.name for column in columns if column.is_label or column.is_coded]
        if all(column.is_numeric for column in columns):
            hint = (
                f"; with --task mixed {', '.join(labels)}, of two whole numbers alone, would be classes"
                if labels
                else ""
            )
            return "regression", f"{len(columns)} columns of numbers{hint}"
        return "mixed", "columns of numbers and of words"
    (column,) = columns
    if column.is_label:
        return "binary", "all values are 0 or 1"
    if column.is_coded:
        values = " or ".join(_class_names(column))
        return "binary", f"all values are {values}, taken for two classes; --task regression reads them as numbers"
    if column.is_numbered_class:
        return "multiclass", f"{len(_class_names(column))} consecutive whole numbers"
    if column.is_numeric:
        return "regression", "its values are numbers"
    if len(column.distinct) == 2:
        return "binary", "it holds two different words"
    if len(column.distinct) <= min(_MAX_CLASSES, column.present // 2):
        return "multiclass", f"it holds {len(column.distinct)} different words"
    raise GritError(
        f"the target column {column.name!r} is text, such as {shown(_example(column))}, with "
        f"{len(column.distinct)} different values in {column.present} rows: neither numbers nor classes"
        f"{_comma_hint(_example(column))}. Name another column."
    )


def _class_names(column: ColumnFacts) -> tuple[str, ...]:
    if len(column.distinct) > _MAX_CLASSES:
        raise GritError(f"{column.name!r} has more than {_MAX_CLASSES} different values, too many for classes.")
    if column.numbers == column.present:
        numbers = sorted({_number(text) or 0.0 for text in column.distinct})
        if numbers == [0.0] or numbers == [1.0]:
            numbers = [0.0, 1.0]
        return tuple(str(int(number)) if number == int(number) else str(number) for number in numbers)
    return tuple(sorted(column.distinct))


def _need(holds: bool, columns: Sequence[ColumnFacts], what: str, kind: str) -> None:
    if not holds:
        names = ", ".join(repr(column.name) for column in columns)
        odd = next((column for column in columns if not column.is_numeric), columns[0])
        examples = ", ".join(map(shorten, sorted(odd.distinct, key=lambda text: (_number(text) is not None, text))[:3]))
        hint = _comma_hint(min(odd.distinct, key=lambda text: not has_comma(text)))
        raise GritError(f"{kind} needs {what} in {names}; found for example {examples}{hint}.")


def _example(column: ColumnFacts) -> str:
    return sorted(text for text in column.distinct if _number(text) is None)[0]


def _comma_hint(text: str) -> str:
    return " (--decimal comma reads it as a number with a decimal comma)" if has_comma(text) else ""


def _folded(text: str) -> str:
    return "".join(text.split()).casefold()


def _number(cell: Cell) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    is_number = isfinite(value) and not (isinstance(cell, str) and "_" in cell)  # 1_000 is a number in Python alone
    return value if is_number else None


def _fits(value: float) -> bool:
    """Whether a number survives as float32, in which targets are stored: neither infinite nor zero by rounding."""
    with np.errstate(over="ignore", under="ignore"):
        stored = float(np.float32(value))
    return isfinite(stored) and (stored != 0 or value == 0)
