"""Predictions for molecules that took no part in training: ``predictions.csv``, and the figures that come from them.

Shape letters: R rows, T targets, O outputs, S predictions for each row.
"""

import codecs
import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from grit.errors import GritError
from grit.files.spreadsheet import guarded
from grit.files.whole_file import whole_file
from grit.graphs.chunk import Array
from grit.graphs.schema import TaskSpec
from grit.graphs.store import GraphStore
from grit.learning.task import Task
from grit.training.calibration import Calibration, with_intervals, with_temperature
from grit.training.fit_folder import PREDICTIONS
from grit.training.members import Member
from grit.training.output_columns import prediction_cells, prediction_columns
from grit.training.predictions import Predictions
from grit.training.predictor import Predictor


@dataclass(frozen=True)
class HeldOut:
    """Rows that were held out.

    Attributes:
        graphs: (R,) numbers in the store.
        parts: For each row its split, val or test, or its fold, from 1 (of the first repeat).
        outputs: (R, O) means over the models that did not learn from the row, before any temperature.
        spread: (R, O) their standard deviation; None where there is one model for each row.
        truth: (R, T), NaN where unknown.
    """

    graphs: Array
    parts: list[str]
    outputs: Array
    spread: Array | None
    truth: Array

    def of(self, part: str) -> "HeldOut":
        """The rows of one part."""
        chosen = np.array([each == part for each in self.parts], dtype=bool)
        spread = None if self.spread is None else self.spread[chosen]
        return HeldOut(
            self.graphs[chosen], [part] * int(chosen.sum()), self.outputs[chosen], spread, self.truth[chosen]
        )

    def described(self, task: TaskSpec, calibration: Calibration) -> Predictions:
        """The predictions as users see them, with intervals or sets."""
        found = Predictions(with_temperature(task, calibration, self.outputs), self.spread)
        return with_intervals(task, calibration, found, calibration.confidence)


def held_out_splits(predictor: Predictor, store: GraphStore) -> HeldOut:
    """Validation and test part of a store, by all models of a predictor."""
    found, graphs, truth = [], [], []
    parts: list[str] = []
    for split in ("val", "test"):
        if split in store.splits and store.split(split).size:
            members, targets = predictor.predict_members(store, split)  # (S, R, O)
            found.append(members)
            truth.append(targets)
            graphs.append(store.split(split))
            parts += [split] * len(targets)
    outputs, spread = _mean_and_spread(np.concatenate(found, axis=1))
    return HeldOut(np.concatenate(graphs), parts, outputs, spread, np.concatenate(truth).astype(np.float64))


def held_out_folds(predictors: Sequence[Predictor], members: Sequence[Member], store: GraphStore) -> HeldOut:
    """Every molecule, by the models in whose test part it was.

    Args:
        predictors: Single models.
        members: What each learned from.
        store: The molecules.
    """
    width = len({(each.repeat, each.number) for each in members})
    numbers = 1 + max(each.number for each in members)
    outputs = np.full((width, len(store), store.schema.num_outputs), np.nan)  # (S, R, O)
    parts = [""] * len(store)
    for predictor, member in zip(predictors, members, strict=True):
        divided = member.store(store)
        rows = divided.split("test")
        outputs[member.repeat * numbers + member.number, rows] = predictor.predict_store(divided, "test")[0]
        if member.repeat == 0:
            for row in rows.tolist():
                parts[row] = str(member.fold + 1)
    graphs = np.arange(len(store))
    mean, spread = _mean_and_spread(outputs)
    return HeldOut(graphs, parts, mean, spread, store.targets(graphs).astype(np.float64))


def fold_figures(
    predictors: Sequence[Predictor], members: Sequence[Member], store: GraphStore
) -> list[dict[str, float]]:
    """Metrics of each fold of each repeat, by the mean of its models."""
    figures = []
    for place in dict.fromkeys((each.repeat, each.fold) for each in members):
        chosen = [
            (predictor, each)
            for predictor, each in zip(predictors, members, strict=True)
            if (each.repeat, each.fold) == place
        ]
        found = [predictor.predict_store(each.store(store), "test") for predictor, each in chosen]
        outputs = np.mean([outputs for outputs, _ in found], axis=0)
        figures.append(Task(store.task).metrics(outputs, found[0][1]))
    return figures


def mean_and_sd(figures: Sequence[dict[str, float]]) -> tuple[dict[str, float], dict[str, float]]:
    """Of each metric over the folds in which it can be computed; NaN if there is none, or only one for the deviation."""
    mean, sd = {}, {}
    for name in figures[0]:
        values = np.array([each[name] for each in figures])
        values = values[np.isfinite(values)]
        mean[name] = float(values.mean()) if values.size else float("nan")
        sd[name] = float(values.std(ddof=1)) if values.size > 1 else float("nan")
    return mean, sd


def coverage(task: TaskSpec, held: HeldOut, calibration: Calibration) -> float | None:
    """The share of known truths within their intervals or sets; None where there are no intervals."""
    found = held.described(task, calibration)
    known = np.isfinite(held.truth)
    inside = np.zeros(held.truth.shape, dtype=bool)
    for k, part in enumerate(task.by_target()):
        truth = held.truth[:, k]
        if part.spec.kind == "regression":
            assert found.low is not None
            assert found.high is not None
            known[:, k] &= np.isfinite(found.low[:, k])
            inside[:, k] = (found.low[:, k] <= truth) & (truth <= found.high[:, k])
        else:
            assert found.sets is not None
            inside[:, k] = found.sets[k][np.arange(len(truth)), np.where(known[:, k], truth, 0).astype(np.int64)]
    return float(inside[known].mean()) if known.any() else None


def write_predictions(
    run: Path, store: GraphStore, smiles: Sequence[str], held: HeldOut, calibration: Calibration
) -> None:
    """Write ``predictions.csv``: the row of the table (0 is the first below the header), SMILES, part, truth, prediction."""
    task, path = store.task, run / PREDICTIONS
    cells = prediction_cells(task, held.described(task, calibration))
    names = prediction_columns(task, has_intervals=True, has_sets=True)
    classes = [part.spec.classes for part in task.by_target()]
    try:
        with whole_file(path) as file:
            writer = csv.writer(codecs.getwriter("utf-8")(file))
            writer.writerow(map(guarded, ["row", "smiles", "part", *task.targets, *names]))
            for graph, part, truth, found in zip(held.graphs.tolist(), held.parts, held.truth, cells, strict=True):
                known = [
                    "" if np.isnan(value) else labels[int(value)] if labels else f"{value:.9g}"
                    for value, labels in zip(truth.tolist(), classes, strict=True)
                ]
                writer.writerow(map(guarded, [str(store.rows[graph]), smiles[graph], part, *known, *found]))
    except OSError as error:
        raise GritError(f"cannot write {str(path)!r}: {error.strerror or error}.") from None


def _mean_and_spread(outputs: Array) -> tuple[Array, Array | None]:
    """(S, R, O) -> (R, O) twice; no spread of a single one."""
    return outputs.mean(0), outputs.std(0, ddof=1) if len(outputs) > 1 else None
