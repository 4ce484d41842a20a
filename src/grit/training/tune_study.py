"""The record of tuning: every trial with its values and results, as ``study.json``, ``trials.csv`` and a recipe.

The search itself is a function of this record (`grit.training.tune_search`), so that nothing else has to be kept.
"""

import csv
import io
from collections.abc import Sequence
from math import isnan
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from grit.errors import GritError
from grit.files.ordinary_file import check_ordinary
from grit.files.spreadsheet import guarded
from grit.files.whole_file import write_text
from grit.learning.metrics import METRICS

STUDY, TRIALS = "study.json", "trials.csv"


class TuneTrial(BaseModel):
    """One set of values, and what came of it.

    Attributes:
        number: From 1.
        values: By key of the recipe.
        state: ``running`` also after an interruption, until it goes on; ``pruned`` if it was given up as worse than most.
        history: The validation metric after each epoch.
        seconds: Of training and validation.
        starts: How often it was begun or gone on with since a process last ended in an orderly way.
        error: Why it failed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    number: int
    values: dict[str, Any]
    state: Literal["running", "complete", "pruned", "failed"] = "running"
    history: tuple[float, ...] = ()
    seconds: float = 0.0
    starts: int = 0
    error: str | None = None


class TuneStudy(BaseModel):
    """The content of ``study.json``.

    Attributes:
        metric: By which trials are compared, on validation.
        preset: What is tuned.
        overrides: Values that are fixed.
        recipe: The preset with these values, by dotted key.
        space: As a file of a space has it.
        seed: Of the split, of all trials and of the search.
        trials: So far, by their numbers.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    metric: str
    preset: str
    overrides: tuple[str, ...]
    recipe: dict[str, Any]
    space: dict[str, Any]
    seed: int
    trials: tuple[TuneTrial, ...] = ()

    @property
    def sign(self) -> float:
        """1 where lower is better, -1 where higher is."""
        return -1.0 if METRICS[self.metric].higher_is_better else 1.0

    @property
    def seconds(self) -> float:
        """Of all trials."""
        return sum(trial.seconds for trial in self.trials)

    def value(self, trial: TuneTrial) -> float | None:
        """The best validation metric of a trial; None if there is none."""
        known = [each for each in trial.history if not isnan(each)]
        return min(known, key=lambda each: self.sign * each) if known else None

    def ranking(self) -> list[TuneTrial]:
        """The trials that have a value, the best first; those that were trained to the end come before the others."""

        def order(trial: TuneTrial) -> tuple[bool, float, int]:
            value = self.value(trial)
            assert value is not None
            return trial.state != "complete", self.sign * value, trial.number

        usable = [trial for trial in self.trials if trial.state != "failed" and self.value(trial) is not None]
        return sorted(usable, key=order)

    def replaced(self, trial: TuneTrial) -> "TuneStudy":
        """With a new trial, or with another record of one that is there."""
        others = tuple(each for each in self.trials if each.number != trial.number)
        return self.model_copy(update={"trials": tuple(sorted((*others, trial), key=lambda each: each.number))})

    def write(self, folder: Path) -> None:
        """Write ``study.json``, and ``trials.csv`` for people."""
        write_text(folder / STUDY, self.model_dump_json(indent=1) + "\n")
        write_text(folder / TRIALS, trials_csv(self))


def read_study(folder: Path) -> TuneStudy | None:
    """The study of a folder; None if there is none."""
    path = folder / STUDY
    if not path.exists():
        return None
    try:
        study = TuneStudy.model_validate_json(check_ordinary(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValidationError) as error:
        raise GritError(f"{str(path)!r} cannot be read: {error}") from None
    if [trial.number for trial in study.trials] != list(range(1, len(study.trials) + 1)) or study.metric not in METRICS:
        raise GritError(f"{str(path)!r} was changed or damaged: its trials are not those of a study.")
    return study


def check_same_study(before: TuneStudy, asked: TuneStudy, run: Path) -> None:
    """Raise if a study was begun otherwise than is asked for now."""
    names = ("metric", "preset", "overrides", "recipe", "space", "seed")
    changed = [name for name in names if getattr(before, name) != getattr(asked, name)]
    if changed:
        raise GritError(
            f"the tuning {str(run)!r} was begun with another {', '.join(changed)}. Repeat the command as it was to go on, or "
            "begin a new one with --run."
        )


def trials_csv(study: TuneStudy) -> str:
    """A line per trial, in the order of their numbers."""
    keys = list(study.space)
    lines: list[Sequence[Any]] = [["trial", *keys, f"val {study.metric}", "epochs", "seconds", "state", "error"]]
    for trial in study.trials:
        value = study.value(trial)
        row = [trial.number, *[trial.values[key] for key in keys], "" if value is None else value, len(trial.history)]
        row += [round(trial.seconds, 3), trial.state, trial.error or ""]
        lines.append([guarded(cell) if isinstance(cell, str) else cell for cell in row])
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()
