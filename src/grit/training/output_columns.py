"""The columns that `grit predict` writes: for each target what is predicted, and how sure that is.

target        columns
a number      ``y_pred``; with intervals also ``y_low``, ``y_high``, and ``y_std``, the spread of an ensemble
two classes   ``y_pred``, the class; ``y_prob``, the probability of the second class; with sets also ``y_set``
a label       as two classes, 0 and 1
classes       ``y_pred``; ``y_prob_NAME`` of each class; with sets also ``y_set``

Targets of several kinds have the columns of their kind each.

Behind them ``nearest_similarity``, where the training molecules are known, and ``note``.

Shape letters: R rows, T targets, O outputs (T, or the number of classes).
"""

from collections.abc import Iterator, Sequence

import numpy as np

from grit.graphs.chunk import Array
from grit.graphs.schema import TargetPart, TaskSpec
from grit.training.predictions import Predictions

NOTE = "note"
SIMILARITY = "nearest_similarity"


def prediction_columns(
    task: TaskSpec, *, has_intervals: bool = False, has_sets: bool = False, has_similarity: bool = False
) -> list[str]:
    """Names of the columns that predictions fill, without the note.

    Args:
        task: What is predicted.
        has_intervals: Whether there are intervals and a spread for numbers.
        has_sets: Whether there are sets of classes.
        has_similarity: Whether there is a similarity to the training molecules.
    """
    names: list[str] = []
    for part in task.by_target():
        (target,), kind = part.spec.targets, part.spec.kind
        names.append(f"{target}_pred")
        if kind == "regression":
            names += [f"{target}_{each}" for each in ("low", "high", "std")] if has_intervals else []
            continue
        chances = [f"_{name}" for name in part.spec.classes] if kind == "multiclass" else [""]
        names += [f"{target}_prob{chance}" for chance in chances]
        names += [f"{target}_set"] if has_sets else []
    return [*names, SIMILARITY] if has_similarity else names


def prediction_cells(task: TaskSpec, found: Predictions) -> Iterator[list[str]]:
    """Predictions as text, row by row, in the order of `prediction_columns`."""
    columns: list[Sequence[str]] = []
    for part in task.by_target():
        columns += (_number_cells if part.spec.kind == "regression" else _class_cells)(part, found)
    if found.similarity is not None:
        columns.append([_text(value) for value in found.similarity])
    return (list(row) for row in zip(*columns, strict=True))


def _number_cells(part: TargetPart, found: Predictions) -> list[Sequence[str]]:
    at, number = part.outputs.start, part.column
    columns: list[Sequence[str]] = [_texts(found.outputs[:, at])]
    if found.low is not None and found.high is not None:
        columns += [_texts(found.low[:, number]), _texts(found.high[:, number])]
        columns.append([""] * len(found.outputs) if found.spread is None else _texts(found.spread[:, at]))
    return columns


def _class_cells(part: TargetPart, found: Predictions) -> list[Sequence[str]]:
    names, chances = part.spec.classes, found.outputs[:, part.outputs]
    columns: list[Sequence[str]] = [[names[each] for each in class_numbers(chances).tolist()]]
    columns += [_texts(column) for column in chances.T]
    if found.sets is not None:
        members = found.sets[part.column]  # (R, classes)
        columns.append([" | ".join(name for name, is_in in zip(names, row, strict=True) if is_in) for row in members])
    return columns


def class_numbers(outputs: Array) -> Array:
    """Number of the likeliest class from probabilities, (n, 1) or (n, C) -> (n,)."""
    if outputs.shape[1] == 1:
        return (outputs[:, 0] > 0.5).astype(np.int64)
    numbers: Array = outputs.argmax(1)
    return numbers


def _texts(values: Array) -> list[str]:
    return [_text(value) for value in values.tolist()]


def _text(value: float) -> str:
    """A number of six digits; nothing where there is none."""
    return f"{value:.6g}" if np.isfinite(value) else ""
