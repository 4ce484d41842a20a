"""A trained model beside simple predictors for molecules: the same split, the same metrics, and a paired test.

Each simple predictor learns from the training molecules only and has no settings that were chosen on the others. Descriptors
are kept in a file, so that a comparison which is repeated does not compute them again.

Shapes: `n` molecules, `T` targets, `O` outputs (T, or the number of classes).
"""

import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from grit.datasets.molecules.descriptors import RDKIT_DESCRIPTORS, rdkit_descriptors
from grit.datasets.pipeline.featurise_rows import batched, default_processes, in_order
from grit.files.whole_file import whole_file
from grit.graphs.chunk import Array
from grit.graphs.schema import TaskSpec
from grit.learning.bootstrap import Difference, Measurement, compare_pair, measure
from grit.training.forest import constant_outputs, forest_outputs

_MOLECULES_PER_PIECE = 64


@dataclass(frozen=True)
class SimplePredictor:
    """Something to compare with.

    Attributes:
        title: What tables call it.
        reads: ``nothing``, ``fingerprints`` or ``descriptors``.
        outputs: (task, x of training, y of training, x to predict, seed) -> outputs (n, O).
        package: What it needs to be installed.
    """

    title: str
    reads: str
    outputs: Callable[[TaskSpec, Array, Array, Array, int], Array]
    package: str | None = None


class SimpleRow(NamedTuple):
    """A simple predictor on the test molecules.

    Attributes:
        title: Its name.
        outputs: (n, O) on them.
        measured: Its metrics.
        ahead: The model's own metric minus that of this predictor, and the paired test.
        seconds: Taken by training and predicting.
    """

    title: str
    outputs: Array
    measured: Measurement
    ahead: Difference | None
    seconds: float

    def as_json(self) -> dict[str, Any]:
        """The same as plain dictionaries, without the outputs."""
        ahead = None if self.ahead is None else dict(self.ahead._asdict())
        return {"title": self.title, **self.measured.as_json(), "model_minus_this": ahead, "seconds": self.seconds}


def compare_simple(
    task: TaskSpec,
    targets: Array,
    train: Array,
    test: Array,
    inputs: Mapping[str, Array],
    *,
    model: Array | None = None,
    seed: int = 0,
    say: Callable[[str], None] = lambda line: None,
) -> dict[str, SimpleRow]:
    """Train every simple predictor whose inputs are there, and compare it with the model's outputs.

    Args:
        task: What is predicted.
        targets: (n, T) of all molecules, NaN where missing.
        train: Numbers of the molecules to learn from.
        test: Of those to measure.
        inputs: ``fingerprints`` (n, 256) packed bits and ``descriptors`` (n, D); one that is missing leaves out its predictors.
        model: (len(test), O) outputs of the model on the test molecules.
        seed: Of the predictors and of the resamples.
        say: Told which are left out and why, a sentence at a time.

    Returns:
        A row for each by its name in `SIMPLE_PREDICTORS`.
    """
    rows: dict[str, SimpleRow] = {}
    y_train, y_test = targets[train].astype(np.float64), targets[test].astype(np.float64)
    for name, each in SIMPLE_PREDICTORS.items():
        if each.reads not in ("nothing", *inputs):
            continue
        if each.package is not None and find_spec(each.package) is None:
            say(f"{each.title} is left out of the comparison: pip install 'torch-grit[{each.package}]' brings it.")
            continue
        x = inputs.get(each.reads, np.zeros((len(targets), 0)))
        x_train, x_test = (_unpacked(x[part]) for part in (train, test))
        began = time.perf_counter()
        outputs = each.outputs(task, x_train, y_train, x_test, seed)
        seconds = time.perf_counter() - began
        ahead = None if model is None else compare_pair(task, model, outputs, y_test, seed=seed)
        rows[name] = SimpleRow(each.title, outputs, measure(task, outputs, y_test, seed=seed), ahead, seconds)
    return rows


def kept_descriptors(
    smiles: Sequence[str],
    file: Path | None = None,
    *,
    processes: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Array:
    """RDKit's descriptors of molecules, (n, D) float32, NaN where there is none; computed once if there is a file for them.

    Args:
        smiles: The molecules, all readable.
        file: Where they are kept, ``.npy``. One of another size, or that cannot be read, is written anew.
        processes: How many compute them; all processors if not given.
        progress: Called with the number of molecules done since the last call.
    """
    shape = (len(smiles), len(RDKIT_DESCRIPTORS))
    if file is not None and file.is_file():
        try:
            found: Array = np.load(file, allow_pickle=False)
            if found.shape == shape and found.dtype == np.float32:
                return found
        except (OSError, ValueError, EOFError):
            pass  # damaged; what it held can be computed
    parts = [np.zeros((0, shape[1]), dtype=np.float32)]
    for part in in_order(_descriptors, batched(smiles, _MOLECULES_PER_PIECE), processes or default_processes()):
        parts.append(part)
        if progress is not None:
            progress(len(part))
    values: Array = np.concatenate(parts)
    if file is not None:
        with whole_file(file) as opened:
            np.save(opened, values, allow_pickle=False)
    return values


def _descriptors(smiles: Iterable[str]) -> Array:
    return np.stack([rdkit_descriptors(each) for each in smiles]).astype(np.float32)


def _unpacked(x: Array) -> Array:
    return np.unpackbits(x, axis=1) if x.dtype == np.uint8 else x


def _constant(task: TaskSpec, x_train: Array, y_train: Array, x: Array, seed: int) -> Array:
    def constant(part: TaskSpec, x_train: Array, y_train: Array, x: Array, seed: int) -> Array:
        return constant_outputs(part, y_train, len(x))

    return _each_target(task, x_train, y_train, x, seed, constant)


def _forest(task: TaskSpec, x_train: Array, y_train: Array, x: Array, seed: int) -> Array:
    return _each_target(task, x_train, y_train, x, seed, forest_outputs)


def _forest_of_descriptors(task: TaskSpec, x_train: Array, y_train: Array, x: Array, seed: int) -> Array:
    """Missing descriptors become the median of the training molecules."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of a descriptor that no training molecule has
        median = np.nan_to_num(np.nanmedian(x_train, axis=0))
    return _forest(task, np.where(np.isnan(x_train), median, x_train), y_train, np.where(np.isnan(x), median, x), seed)


def _boosting(task: TaskSpec, x_train: Array, y_train: Array, x: Array, seed: int) -> Array:
    return _each_target(task, x_train, y_train, x, seed, _boosted)


def _boosted(task: TaskSpec, x_train: Array, y_train: Array, x: Array, seed: int) -> Array:
    """LightGBM with 500 trees at a rate of 0.05, else as it comes; (n, 1), or (n, classes)."""
    import lightgbm

    labels = y_train[:, 0]
    width = max(2, len(task.classes))
    if task.kind != "regression" and np.unique(labels).size == 1:
        chances = np.tile(np.eye(width)[int(labels[0])], (len(x), 1))
        return chances if task.kind == "multiclass" else chances[:, 1:2]
    objective = {"regression": "regression", "multiclass": "multiclass"}.get(task.kind, "binary")
    options: dict[str, Any] = {"objective": objective, "learning_rate": 0.05, "seed": seed, "verbose": -1}
    options |= {"num_threads": 1, "deterministic": True, "force_row_wise": True}
    options |= {"num_class": width} if task.kind == "multiclass" else {}
    found = lightgbm.train(options, lightgbm.Dataset(x_train, labels), num_boost_round=500).predict(x)
    return np.asarray(found, dtype=np.float64).reshape(len(x), -1)


def _each_target(
    task: TaskSpec,
    x_train: Array,
    y_train: Array,
    x: Array,
    seed: int,
    outputs: Callable[[TaskSpec, Array, Array, Array, int], Array],
) -> Array:
    """Each target by itself, from the molecules whose label is known; without any, what is known of nothing."""
    columns = []
    for part in task.by_target():
        known = ~np.isnan(y_train[:, part.column])
        if known.any():
            columns.append(outputs(part.spec, x_train[known], y_train[known, part.column, None], x, seed))
        else:
            columns.append(np.full((len(x), part.spec.num_outputs), _unknown(part.spec)))
    return np.concatenate(columns, axis=1)


def _unknown(task: TaskSpec) -> float:
    return {"regression": 0.0, "multiclass": 1 / max(1, len(task.classes))}.get(task.kind, 0.5)


SIMPLE_PREDICTORS: dict[str, SimplePredictor] = {
    "constant": SimplePredictor("always the mean / class shares", "nothing", _constant),
    "forest": SimplePredictor("fingerprints + random forest", "fingerprints", _forest),
    "forest-descriptors": SimplePredictor("descriptors + random forest", "descriptors", _forest_of_descriptors),
    "boosting": SimplePredictor("descriptors + LightGBM", "descriptors", _boosting, package="lightgbm"),
}
