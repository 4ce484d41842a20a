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
from grit.graphs.schema import TargetPart, TaskSpec
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
        numbers = False
        for part, target in zip(task.by_target(), self.targets, strict=True):
            labels = [f" of class {each}" for each in part.spec.classes] or [""]
            counts = [(label, len(scores)) for label, scores in zip(labels, target.scores, strict=True)]
            short += [f"{part.spec.targets[0]}{label} {count}" for label, count in counts if count < needed]
            numbers |= part.spec.kind == "regression" and counts[0][1] < needed
        if not short:
            return None
        what = "intervals are left empty" if numbers else "sets include these classes always"
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
    if [len(each.scores) for each in found.targets] != [len(part.spec.classes) or 1 for part in task.by_target()]:
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
    for part in task.by_target():
        y, at = truth[:, part.column].astype(np.float64), part.outputs.start
        if part.spec.kind == "regression":
            each = None if spread is None else spread[:, at]
            offset = None if each is None or not each.size or not each.mean() > 0 else float(each.mean())
            scores = [interval_scores(y, outputs[:, at], widths(each, offset, len(y)))]
            targets.append(TargetCalibration(scores=_rounded(scores), offset=offset))
            continue
        chances = _chances(part, outputs)
        temperature = fitted_temperature(y, chances)
        scores = class_scores(y, tempered(chances, temperature))
        targets.append(TargetCalibration(scores=_rounded(scores), temperature=temperature))
    return Calibration(confidence=confidence, source=source, targets=tuple(targets))


def with_temperature(task: TaskSpec, calibration: Calibration, outputs: Array) -> Array:
    """Outputs as they are given to users: probabilities at the temperature of their target; numbers as they are."""
    columns = [
        outputs[:, part.outputs]
        if part.spec.kind == "regression"
        else tempered(_chances(part, outputs), target.temperature)[:, 0 if part.spec.kind == "multiclass" else 1 :]
        for part, target in zip(task.by_target(), calibration.targets, strict=True)
    ]
    return np.concatenate(columns, axis=1)


def with_intervals(task: TaskSpec, calibration: Calibration, found: Predictions, confidence: float) -> Predictions:
    """Predictions with intervals of numbers and sets of classes; ``found.outputs`` have their temperature already."""
    rows, parts = len(found.outputs), task.by_target()
    low, high = (np.full((rows, len(parts)), np.nan) for _ in range(2))
    sets = [np.zeros((rows, 0), dtype=bool) for _ in parts]
    for part, target in zip(parts, calibration.targets, strict=True):
        if part.spec.kind != "regression":
            scores = [np.array(each) for each in target.scores]
            sets[part.column] = class_sets(_chances(part, found.outputs), scores, confidence)
            continue
        at = part.outputs.start
        spread = None if found.spread is None else found.spread[:, at]
        half = score_bound(np.array(target.scores[0]), confidence) * widths(spread, target.offset, rows)
        low[:, part.column], high[:, part.column] = found.outputs[:, at] - half, found.outputs[:, at] + half
    kinds = {part.spec.kind for part in parts}
    if "regression" in kinds:
        found = found._replace(low=low, high=high)
    return found._replace(sets=tuple(sets)) if kinds != {"regression"} else found


def _chances(part: TargetPart, outputs: Array) -> Array:
    """Probability of each class of one target, (R, C)."""
    if part.spec.kind == "multiclass":
        return outputs[:, part.outputs]
    one = outputs[:, part.outputs.start]
    return np.stack([1.0 - one, one], axis=1)


def _rounded(scores: list[Array]) -> tuple[tuple[float, ...], ...]:
    """Seven digits, upwards, so that no bound becomes too narrow by it."""
    return tuple(tuple(float(f"{value * (1 + 1e-6):.7g}") for value in each.tolist()) for each in scores)
