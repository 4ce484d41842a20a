"""GRIT in scikit-learn's manner: ``fit``, ``predict``, ``score``, clones, pipelines and cross-validation.

X is a list (or array) of SMILES, or of PyG graphs.
"""

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from grit.datasets.own.graph_lists import from_pyg
from grit.datasets.own.molecule_stores import unusable_rows
from grit.datasets.own.molecule_tables import from_smiles
from grit.datasets.own.task_inference import TaskKind
from grit.datasets.pipeline.splits import random_split
from grit.errors import GritError
from grit.graphs.chunk import Array
from grit.graphs.store import GraphStore
from grit.recipe.presets import preset_recipe
from grit.training.output_columns import class_numbers
from grit.training.predictor import Predictor, are_graphs, load
from grit.training.train import RunOptions, train


class _GritEstimator(BaseEstimator):  # type: ignore[misc]
    """What regressor and classifier share.

    Args:
        preset: ``fast``, ``default`` or ``paper``: size of the model and length of training; or the file of a recipe.
        epochs: Passes over the data; the preset's own if None.
        seed: Of weights, shuffling, dropout and of the validation part (a tenth of the data) by which the best epoch is chosen.
        overrides: Further changes to the preset, such as ``("train.lr=5e-4",)``.
        device: Where to compute.
        standardise: ``none`` or ``parent``, for SMILES; see `grit.datasets.own.molecule_tables.MoleculeTable`.
        duplicates: ``keep``, ``merge``, ``drop`` or ``error``, for SMILES; see there.
    """

    def __init__(
        self,
        preset: str = "fast",
        epochs: int | None = None,
        seed: int = 0,
        overrides: Sequence[str] = (),
        device: str = "cpu",
        standardise: str = "none",
        duplicates: str = "keep",
    ) -> None:
        self.preset = preset
        self.epochs = epochs
        self.seed = seed
        self.overrides = overrides
        self.device = device
        self.standardise = standardise
        self.duplicates = duplicates

    def _fit(self, X: Any, y: Array, kind: TaskKind) -> Self:
        items = list(X)
        if len(items) != len(y):
            raise GritError(f"X has {len(items)} entries and y has {len(y)}.")
        store = self._store(items, y, kind)
        changes = [
            *self.overrides,
            f"train.seed={self.seed}",
            *([f"train.epochs={self.epochs}"] if self.epochs else []),
        ]
        recipe = preset_recipe(self.preset, store.schema, *changes)
        folder = Path(tempfile.mkdtemp())
        try:
            train(recipe, folder / "run", store=store, options=RunOptions(device=self.device))
            self.predictor_: Predictor = load(folder / "run", self.device)
        finally:
            shutil.rmtree(folder)
        return self

    def _store(self, items: list[Any], y: Array, kind: TaskKind) -> GraphStore:
        if not are_graphs(items, "X[{}]"):
            store = from_smiles(
                items,
                y,
                task=kind,
                seed=self.seed,
                standardise=self.standardise,
                duplicates=self.duplicates,
                processes=1,
                say=lambda line: None,
            )
            unusable = unusable_rows(store)
            if unusable:
                bad = unusable[0]
                raise GritError(
                    f"X[{bad.line}] is {bad.content!r}, which cannot be used: {bad.reason} ({len(unusable)} such in all)."
                )
            return store.with_splits(_without_test(store.splits))
        splits = _without_test(random_split(len(items), self.seed))
        dtype = torch.float32 if kind == "regression" else torch.int64
        graphs = [item.clone() for item in items]
        for graph, target in zip(graphs, y, strict=True):
            graph.y = torch.as_tensor(target, dtype=dtype).reshape(1, -1)
        return from_pyg(graphs, task=kind, splits=splits)


def _without_test(splits: Mapping[str, Array]) -> dict[str, Array]:
    """Nine tenths to learn from, and one by which the best epoch is chosen; identical molecules are together as before."""
    return {"train": np.sort(np.concatenate([splits["train"], splits["test"]])), "val": splits["val"]}


class GritRegressor(RegressorMixin, _GritEstimator):  # type: ignore[misc]
    """Regression of one or more numbers."""

    def fit(self, X: Any, y: Any) -> Self:
        """Train; y is (n,) or (n, T), NaN where unknown."""
        values = np.asarray(y, dtype=np.float64)
        self.is_single_ = values.ndim == 1
        return self._fit(X, values, "regression")

    def predict(self, X: Any) -> Array:
        """Numbers in the units of y, of the shape of y."""
        check_is_fitted(self, "predictor_")
        outputs: Array = self.predictor_.predict(list(X))
        return outputs[:, 0] if self.is_single_ else outputs


class GritClassifier(ClassifierMixin, _GritEstimator):  # type: ignore[misc]
    """Classification into two or more classes."""

    def fit(self, X: Any, y: Any) -> Self:
        """Train; y is (n,), of any labels."""
        self.classes_, numbers = np.unique(np.asarray(y), return_inverse=True)
        if len(self.classes_) < 2:
            raise GritError(f"y has only the class {self.classes_.tolist()}; classification needs at least two.")
        return self._fit(X, numbers, "binary" if len(self.classes_) == 2 else "multiclass")

    def predict(self, X: Any) -> Array:
        """The likeliest class of each entry."""
        check_is_fitted(self, "predictor_")
        labels: Array = self.classes_[class_numbers(self.predictor_.predict(list(X)))]
        return labels

    def predict_proba(self, X: Any) -> Array:
        """Probability of each class, (n, C)."""
        check_is_fitted(self, "predictor_")
        outputs: Array = self.predictor_.predict(list(X))
        return np.concatenate([1 - outputs, outputs], axis=1) if outputs.shape[1] == 1 else outputs
