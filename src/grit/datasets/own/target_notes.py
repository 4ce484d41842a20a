"""What a user should know of the columns to predict before a model learns from them: too constant, too rare, too skewed.

A column that cannot teach anything is refused; everything else is used as it is, and said with the option that changes it.
"""

from collections.abc import Sequence
from math import exp, log

import numpy as np

from grit.datasets.own.data_notes import Note
from grit.datasets.own.task_inference import ColumnFacts, Targets
from grit.errors import GritError, shown
from grit.graphs.schema import TaskSpec

_NEARLY_ALL = 0.9  # of the values, for a column to be nearly constant
_RARE = 0.2  # of an equal share: a tenth of two classes, a twentieth of four
_DECADES = 1000.0  # from the smallest to the largest value
_SKEWED = 3.0  # mean over geometric mean: that of a log-normal column with a deviation of 0.64 decades
_SHOWN = 5


def check_varied(columns: Sequence[ColumnFacts]) -> None:
    """Raise if a column has one value alone."""
    for column in columns:
        is_number = column.numbers == column.present
        same = len(column.distinct) == 1 or (is_number and np.float32(column.low) == np.float32(column.high))
        if column.present > 1 and same:
            value = next(iter(column.distinct)) if len(column.distinct) == 1 else f"{column.low:g}"
            others = "" if len(column.distinct) == 1 else " in the 32 bits of a model"
            leave = "Name another column" if len(columns) == 1 else "Leave this target out"
            raise GritError(
                f"the target column {column.name!r} is constant: all its {column.present:,} values are {shown(value)}{others}. "
                f"There is nothing to learn. {leave}."
            )


def target_notes(columns: Sequence[ColumnFacts], targets: Targets) -> list[Note]:
    """What should be known of each target.

    Args:
        columns: What was seen of them.
        targets: The task that was made of them.
    """
    found: list[str] = []
    for part in targets.task.by_target():
        column = columns[part.column]
        if part.spec.kind == "regression":
            found += [*_nearly_constant(column), *_skewed(column)]
        else:
            found += _alike(column, part.spec.classes)
    return [Note("target", text) for text in [*found, *_rare(columns, targets)]]


def _nearly_constant(column: ColumnFacts) -> list[str]:
    value, count = max(column.counts.items(), key=lambda pair: pair[1])
    if count < _NEARLY_ALL * column.present:
        return []
    return [
        f"{column.name} is nearly constant: {count / column.present:.1%} of its {column.present:,} values are {value}. A model "
        f"that always says {value} looks good; a column of two classes, {value} or not, may be the better target."
    ]


def _skewed(column: ColumnFacts) -> list[str]:
    if column.positive < column.numbers or column.low * _DECADES > column.high:
        return []
    mean, middle = column.total / column.numbers, exp(column.log_total / column.numbers)
    if mean < _SKEWED * middle:
        return []
    decades = log(column.high / column.low, 10)
    return [
        f"{column.name} spreads over {decades:.0f} decades ({column.low:g} to {column.high:g}), and a few large values "
        "dominate the error. Its logarithm is usually learned better: add a column, in a spreadsheet =LOG10(cell), in pandas "
        f"numpy.log10(table[{column.name!r}]), and name it with --target."
    ]


def _alike(column: ColumnFacts, classes: Sequence[str]) -> list[str]:
    groups = [names for names in column.spellings().values() if len(names) > 1]
    if not groups:
        return []
    listed = "; ".join(
        " and ".join(f"{name!r} ({column.counts[name]:,})" for name in names) for names in groups[:_SHOWN]
    )
    is_separate = all(name in classes for name in groups[0])
    done = (
        "They count as different classes; --ignore-case makes one of each."
        if is_separate
        else "Each counts as one class, as asked (--ignore-case)."
    )
    return [f"Classes of {column.name} differ only in case or spaces: {listed}. {done}"]


def _rare(columns: Sequence[ColumnFacts], targets: Targets) -> list[str]:
    rare = []
    for part in targets.task.by_target():
        if part.spec.kind == "regression":
            continue
        column = columns[part.column]
        counts = _class_counts(column, part.spec)
        name, count = min(counts.items(), key=lambda pair: pair[1])
        known = sum(counts.values())
        if count * len(counts) < _RARE * known:
            rare.append(f"{count / known:.1%} of {known:,} labels of {column.name} are {name!r}")
    if not rare:
        return []
    more = f"; and {len(rare) - _SHOWN:,} other targets" if len(rare) > _SHOWN else ""
    return [
        f"Classes are unbalanced: {'; '.join(rare[:_SHOWN])}{more}. --balance lets rare classes count as much as common ones; "
        "judge by average precision (ap) or balanced accuracy, not by accuracy."
    ]


def _class_counts(column: ColumnFacts, spec: TaskSpec) -> dict[str, int]:
    names = spec.classes or ("0", "1")
    counts, target = dict.fromkeys(names, 0), Targets(spec, "")
    for text, count in column.counts.items():
        values, reason = target.parse([text])
        if reason is None:
            counts[names[int(values[0])]] += count
    return counts
