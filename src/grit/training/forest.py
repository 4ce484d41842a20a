"""Simple predictors for molecules, to compare with: a constant, and a random forest on Morgan fingerprints."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from grit.datasets.molecules.smiles import morgan_fingerprint
from grit.graphs.chunk import Array
from grit.graphs.schema import TaskSpec


def constant_outputs(task: TaskSpec, train: Array, count: int) -> Array:
    """The mean of each target, or the share of each class, for everyone: (count, num_outputs)."""
    if task.kind == "mixed":
        return np.concatenate(
            [constant_outputs(part.spec, train[:, [part.column]], count) for part in task.by_target()], axis=1
        )
    if task.kind == "multiclass":
        known = train[~np.isnan(train[:, 0]), 0].astype(np.int64)
        constant = np.bincount(known, minlength=len(task.classes)) / max(1, known.size)
    else:
        constant = np.nanmean(train, axis=0)
    return np.tile(constant, (count, 1))


def packed_fingerprints(smiles: Sequence[str]) -> Array:
    """Morgan fingerprints in packed bits, (n, 256) uint8; all SMILES must be readable."""
    return np.stack([np.packbits(morgan_fingerprint(each)) for each in smiles])


def forest_outputs(task: TaskSpec, x_train: Array, train: Array, x_test: Array, seed: int = 0) -> Array:
    """Predictions of a random forest of 200 trees on fingerprints, one forest per target: (n, num_outputs)."""
    columns = []
    for part in task.by_target():
        known = ~np.isnan(train[:, part.column])
        columns.append(_forest(part.spec, x_train[known], train[known, part.column], x_test, seed))
    return np.concatenate(columns, axis=1)


def _forest(task: TaskSpec, x: Array, y: Array, x_test: Array, seed: int) -> Array:
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    options: dict[str, Any] = {"n_estimators": 200, "random_state": seed, "n_jobs": -1}
    if task.kind == "regression":
        predicted: Array = RandomForestRegressor(**options).fit(x, y).predict(x_test)
        return predicted[:, None]
    forest = RandomForestClassifier(**options).fit(x, y.astype(np.int64))
    classes = max(2, len(task.classes))
    probability = np.zeros((len(x_test), classes))
    probability[:, forest.classes_] = forest.predict_proba(x_test)
    return probability if task.kind == "multiclass" else probability[:, 1:2]
