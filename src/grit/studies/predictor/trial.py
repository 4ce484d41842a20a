"""One fit of the study: GRIT trained as `grit fit` trains it, and everything measured on the test molecules of its split."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from grit.graphs.chunk import Array
from grit.graphs.schema import TaskSpec
from grit.graphs.store import GraphStore
from grit.learning.bootstrap import compare_pair
from grit.learning.metrics import find_metric
from grit.studies.predictor.molecule_data import MoleculeData, StudyTable
from grit.training.calibration import calibrated
from grit.training.compare_simple import compare_simple, kept_descriptors
from grit.training.fit import fit
from grit.training.fit_folder import FitPlan, fitted_models
from grit.training.forest import packed_fingerprints
from grit.training.held_out import HeldOut, coverage, held_out_splits
from grit.training.predictor import Predictor, load_run
from grit.training.train import RunOptions

CONFIDENCE = 0.9
ONE, SEVERAL = "grit", "ensemble"  # the rows of GRIT


class Settings(NamedTuple):
    """How GRIT is trained.

    Attributes:
        preset: Of `grit fit`.
        overrides: Changes to it.
        ensemble: Models of an ensemble; 1 for none.
        device: Where.
    """

    preset: str
    overrides: tuple[str, ...]
    ensemble: int
    device: str


class Trial(NamedTuple):
    """What one fit gave; plain JSON.

    Attributes:
        sizes: Molecules of train, val and test.
        skipped: Rows that could not be used.
        values: Test metric of each predictor, by its name.
        titles: Of each.
        seconds: Of training each (wall time); simple predictors with their predictions.
        chance: For each row of GRIT and each other predictor the p of the paired bootstrap over test molecules.
        coverage: Share of test values in their intervals or sets, for each row of GRIT; None where there are too few
            validation molecules for the confidence.
        width: Mean width of the intervals; None for classes.
    """

    sizes: list[int]
    skipped: int
    values: dict[str, float]
    titles: dict[str, str]
    seconds: dict[str, float]
    chance: dict[str, dict[str, float]]
    coverage: dict[str, float | None]
    width: dict[str, float | None]


def run_trial(
    data: MoleculeData,
    table: StudyTable,
    folder: Path,
    descriptors: Path,
    *,
    split: str,
    seed: int,
    settings: Settings,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Train, or go on with what is in the folder, and measure.

    Args:
        data: What the table is.
        table: The table.
        folder: Of the fit.
        descriptors: File in which RDKit's descriptors of the table are kept.
        split: ``scaffold`` or ``random``.
        seed: Of the models and the simple predictors, and of a random split.
        settings: How GRIT is trained.
        say: Told of what the user should know.

    Returns:
        The fields of `Trial`.
    """
    divided = table.divided(split, seed)
    result, _, skipped = fit(
        divided,
        folder,
        preset=settings.preset,
        overrides=settings.overrides,
        plan=FitPlan(ensemble=settings.ensemble, confidence=CONFIDENCE),
        resume=True,
        with_forest=False,
        options=RunOptions(settings.device),
    )
    store = GraphStore.open(folder / "data")
    several = result.get("members", [result])
    taken = [each["seconds"] for each in several]
    held = _held_out(folder, store, settings)
    task = store.task
    names = {ONE: "GRIT", SEVERAL: f"GRIT, ensemble of {settings.ensemble}"}
    titles = {name: names[name] for name in held}
    outputs = {name: each.of("test").outputs for name, each in held.items()}
    seconds = {ONE: taken[0], SEVERAL: sum(taken)}
    truth = held[ONE].of("test").truth
    if data.compared:
        smiles, every = divided.smiles_of(store), np.arange(len(store))
        inputs = {
            "fingerprints": packed_fingerprints(smiles),
            "descriptors": kept_descriptors(smiles, descriptors),
        }
        targets = store.targets(every).astype(np.float64)
        rows = compare_simple(task, targets, store.split("train"), store.split("test"), inputs, seed=seed, say=say)
        for name, row in rows.items():
            titles[name], outputs[name], seconds[name] = row.title, row.outputs, row.seconds
    metric = find_metric(data.metric, task.kind)
    intervals = {name: _intervals(task, each) for name, each in held.items()}
    return Trial(
        sizes=[int(store.split(part).size) for part in ("train", "val", "test")],
        skipped=skipped,
        values={name: float(metric.compute(each, truth)) for name, each in outputs.items()},
        titles=titles,
        seconds={name: seconds[name] for name in outputs},
        chance={one: _chances(data.metric, task, outputs, one, truth) for one in held} if data.compared else {},
        coverage={name: each[0] for name, each in intervals.items()},
        width={name: each[1] for name, each in intervals.items()},
    )._asdict()


def _held_out(folder: Path, store: GraphStore, settings: Settings) -> dict[str, HeldOut]:
    """Validation and test molecules by the first model, and by all together where there are several."""
    trained = [load_run(each) for each in fitted_models(folder) or ()]
    device = "cpu" if settings.device == "auto" else settings.device
    found = {ONE: held_out_splits(Predictor(*trained[0], device), store)}
    if len(trained) > 1:
        found[SEVERAL] = held_out_splits(Predictor(*trained[0], device, others=trained[1:]), store)
    return found


def _chances(metric: str, task: TaskSpec, outputs: dict[str, Array], one: str, truth: Array) -> dict[str, float]:
    return {
        other: compare_pair(task, outputs[one], outputs[other], truth, metric=metric).p
        for other in outputs
        if other != one
    }


def _intervals(task: TaskSpec, held: HeldOut) -> tuple[float | None, float | None]:
    """Coverage of the test values, and the mean width of intervals; both calibrated on the validation molecules."""
    known, test = held.of("val"), held.of("test")
    found = calibrated(task, known.outputs, known.spread, known.truth, CONFIDENCE, "validation")
    if found.too_few(task, CONFIDENCE):
        return None, None
    described = test.described(task, found)
    width = None
    if described.low is not None and described.high is not None:
        width = float(np.mean(described.high - described.low))
    return coverage(task, test, found), width


def as_trials(found: Sequence[dict[str, Any]]) -> list[Trial]:
    """Trials from plain JSON."""
    return [Trial(**each) for each in found]
