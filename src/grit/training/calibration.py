"""What held-out predictions say about new ones: ``calibration.json`` of a fit, and what `Predictor` makes of it.

Shape letters: R rows, T targets, O outputs (T, or the number of classes), C classes of a target.
"""

from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from grit.errors import GritError
from grit.files.ordinary_file import check_ordinary
from grit.files.whole_file import write_text
from grit.graphs.chunk import Array
from grit.graphs.schema import TaskSpec
from grit.training.conformal import (
    class_scores,
    class_sets,
    fitted_temperature,
    interval_scores,
    rows_needed,
    score_bound,
    tempered,
    widths,
)
from grit.training.predictions import Predictions

FILE = "calibration.json"
Source = Literal["validation", "out-of-fold"]


class TargetCalibration(BaseModel):
    """One target.

    Attributes:
        scores: Sorted; of a number one list, of classes a list per class.
        temperature: By which the logarithms of probabilities are divided.
        offset: Added to the spread of an ensemble; None where intervals do not depend on it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    scores: tuple[tuple[float, ...], ...]
    temperature: float = Field(default=1.0, gt=0.0)
    offset: float | None = Field(default=None, gt=0.0)


class Calibration(BaseModel):
    """All targets.

    Attributes:
        confidence: Of the intervals and sets, unless another is asked for.
        source: Which molecules the scores are of.
        targets: In the order of the task's.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    confidence: float = Field(gt=0.0, lt=1.0)
    source: Source
    targets: tuple[TargetCalibration, ...]

    def write(self, folder: Path) -> None:
        """Write ``calibration.json``."""
        write_text(folder / FILE, self.model_dump_json(indent=1) + "\n")

    def too_few(self, task: TaskSpec, confidence: float) -> str | None:
        """A sentence if some target or class has too few scores for this confidence; None if all have enough."""
        needed = rows_needed(confidence)
        short = []
        for name, target in zip(task.targets, self.targets, strict=True):
            labels = [""] if task.kind == "regression" else [f" of class {each}" for each in task.classes or ("0", "1")]
            counts = zip(labels, target.scores, strict=True)
            short += [f"{name}{label} {len(scores)}" for label, scores in counts if len(scores) < needed]
        if not short:
            return None
        what = "intervals are left empty" if task.kind == "regression" else "sets include these classes always"
        return (
            f"confidence {confidence:.0%} needs {needed} held-out molecules for each target and class; there are fewer "
            f"({', '.join(short[:4])}{' ...' if short[4:] else ''}): {what}. Use --folds, a lower --confidence, or more data."
        )


def read_calibration(folder: Path, task: TaskSpec) -> Calibration | None:
    """The calibration of a fit; None if it has none."""
    path = folder / FILE
    if not path.exists():
        return None
    try:
        found = Calibration.model_validate_json(check_ordinary(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValidationError) as error:
        raise GritError(f"{str(path)!r} cannot be read: {error}") from None
    classes = 1 if task.kind == "regression" else max(2, len(task.classes))
    if [len(each.scores) for each in found.targets] != [classes] * len(task.targets):
        raise GritError(f"{str(path)!r} is of another model. Repeat the fit with --resume, which writes it again.")
    return found


def calibrated(
    task: TaskSpec, outputs: Array, spread: Array | None, truth: Array, confidence: float, source: Source
) -> Calibration:
    """The calibration from held-out predictions.

    Args:
        task: What is predicted.
        outputs: (R, O).
        spread: (R, O) over the members of an ensemble; None for a single model.
        truth: (R, T), NaN where unknown.
        confidence: To use unless another is asked for.
        source: Which molecules these are.
    """
    targets = []
    for number in range(len(task.targets)):
        y = truth[:, number].astype(np.float64)
        if task.kind == "regression":
            each = None if spread is None else spread[:, number]
            offset = None if each is None or not each.size or not each.mean() > 0 else float(each.mean())
            scores = [interval_scores(y, outputs[:, number], widths(each, offset, len(y)))]
            targets.append(TargetCalibration(scores=_rounded(scores), offset=offset))
            continue
        chances = _chances(task, outputs, number)
        temperature = fitted_temperature(y, chances)
        scores = class_scores(y, tempered(chances, temperature))
        targets.append(TargetCalibration(scores=_rounded(scores), temperature=temperature))
    return Calibration(confidence=confidence, source=source, targets=tuple(targets))


def with_temperature(task: TaskSpec, calibration: Calibration, outputs: Array) -> Array:
    """Outputs as they are given to users: probabilities at the temperature of their target; numbers as they are."""
    if task.kind == "regression":
        return outputs
    columns = [
        tempered(_chances(task, outputs, number), target.temperature)[:, 0 if task.kind == "multiclass" else 1 :]
        for number, target in enumerate(calibration.targets)
    ]
    return np.concatenate(columns, axis=1)


def with_intervals(task: TaskSpec, calibration: Calibration, found: Predictions, confidence: float) -> Predictions:
    """Predictions with intervals or sets; ``found.outputs`` have their temperature already."""
    if task.kind != "regression":
        sets = [
            class_sets(_chances(task, found.outputs, number), [np.array(each) for each in target.scores], confidence)
            for number, target in enumerate(calibration.targets)
        ]
        return found._replace(sets=tuple(sets))
    half = np.zeros(found.outputs.shape)
    for number, target in enumerate(calibration.targets):
        spread = None if found.spread is None else found.spread[:, number]
        half[:, number] = score_bound(np.array(target.scores[0]), confidence) * widths(
            spread, target.offset, len(found.outputs)
        )
    return found._replace(low=found.outputs - half, high=found.outputs + half)


def _chances(task: TaskSpec, outputs: Array, number: int) -> Array:
    """Probability of each class of one target, (R, C)."""
    if task.kind == "multiclass":
        return outputs
    one = outputs[:, number]
    return np.stack([1.0 - one, one], axis=1)


def _rounded(scores: list[Array]) -> tuple[tuple[float, ...], ...]:
    """Seven digits, upwards, so that no bound becomes too narrow by it."""
    return tuple(tuple(float(f"{value * (1 + 1e-6):.7g}") for value in each.tolist()) for each in scores)
