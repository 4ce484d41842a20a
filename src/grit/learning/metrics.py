"""Metrics over a whole split: the table `METRICS`."""

from collections.abc import Callable
from dataclasses import dataclass
from math import isnan

import numpy as np

from grit.errors import GritError
from grit.graphs.chunk import Array


@dataclass(frozen=True)
class Metric:
    """One entry of `METRICS`.

    Attributes:
        kinds: The kinds of task that it is computed for: regression, binary, multiclass, multilabel.
        compute: (outputs (R, num_outputs), targets (R, T) with NaN where missing) -> its value, NaN where it is not defined.
        higher_is_better: Its direction.
        in_percent: Whether tables show it in percent, as the paper does.
        always_shown: Whether every task of these kinds is measured by it; if not, only one that names it as its own metric.
    """

    kinds: tuple[str, ...]
    compute: Callable[[Array, Array], float]
    higher_is_better: bool = True
    in_percent: bool = False
    always_shown: bool = True


def metrics_of(kind: str) -> dict[str, Metric]:
    """The metrics of a kind of task, by name."""
    return {name: metric for name, metric in METRICS.items() if kind in metric.kinds}


def find_metric(name: str, kind: str) -> Metric:
    """The entry of that name, if it is for this kind of task."""
    found = metrics_of(kind)
    if name not in found:
        raise GritError(f"{kind} is measured by {', '.join(found)}, not by {name}.")
    return found[name]


def _mae(outputs: Array, targets: Array) -> float:
    return _over_known(outputs, targets, lambda o, y: float(np.abs(o - y).mean()))


def _rmse(outputs: Array, targets: Array) -> float:
    return _over_known(outputs, targets, lambda o, y: float(np.sqrt(np.square(o - y).mean())))


def _r2(outputs: Array, targets: Array) -> float:
    from sklearn.metrics import r2_score

    return _per_target(
        outputs, targets, lambda o, y: float(r2_score(y, o)) if y.size > 1 and np.ptp(y) > 0 else float("nan")
    )


def _auroc(outputs: Array, targets: Array) -> float:
    from sklearn.metrics import roc_auc_score

    return _per_target(
        outputs, targets, lambda o, y: float(roc_auc_score(y, o)) if np.unique(y).size == 2 else float("nan")
    )


def _average_precision(outputs: Array, targets: Array) -> float:
    from sklearn.metrics import average_precision_score

    return _per_target(
        outputs, targets, lambda o, y: float(average_precision_score(y, o)) if np.unique(y).size == 2 else float("nan")
    )


def _accuracy(outputs: Array, targets: Array) -> float:
    guess, truth = _classes(outputs, targets)
    return float((guess == truth).mean()) if truth.size else float("nan")


def accuracy_sbm(guess: Array, truth: Array) -> float:
    """Mean over classes of the share found, over classes that occur as truth or guess; one that is only guessed counts 0."""
    classes = np.union1d(guess, truth)
    found = [float((guess[truth == c] == c).mean()) if (truth == c).any() else 0.0 for c in classes]
    return float(np.mean(found)) if found else float("nan")


def _accuracy_sbm(outputs: Array, targets: Array) -> float:
    return accuracy_sbm(*_classes(outputs, targets))


def _skill(outputs: Array, targets: Array) -> float:
    """R2, of classes that of their probabilities (the Brier skill score): 1 for who knows, 0 for who knows the shares alone.

    It means the same for numbers and classes, so that it can be averaged over both.
    """
    if outputs.shape[1] == targets.shape[1]:
        return _r2(outputs, targets)
    known = ~np.isnan(targets[:, 0])
    came = np.eye(outputs.shape[1])[targets[known, 0].astype(np.int64)]  # (R, C)
    spread = np.square(came - came.mean(0)).sum() if came.size else 0.0
    return 1 - float(np.square(outputs[known] - came).sum() / spread) if spread > 0 else float("nan")


def _classes(outputs: Array, targets: Array) -> tuple[Array, Array]:
    known = ~np.isnan(targets[:, 0])
    guess = outputs.argmax(1) if outputs.shape[1] > 1 else (outputs[:, 0] > 0.5).astype(np.int64)
    return guess[known], targets[known, 0].astype(np.int64)


def _over_known(outputs: Array, targets: Array, metric: Callable[[Array, Array], float]) -> float:
    known = ~np.isnan(targets)
    return metric(outputs[known], targets[known]) if known.any() else float("nan")


def _per_target(outputs: Array, targets: Array, metric: Callable[[Array, Array], float]) -> float:
    """Plain mean over the targets for which the metric is defined."""
    values = [_over_known(outputs[:, column], targets[:, column], metric) for column in range(targets.shape[1])]
    defined = [value for value in values if not isnan(value)]
    return float(np.mean(defined)) if defined else float("nan")


METRICS: dict[str, Metric] = {
    "mae": Metric(("regression",), _mae, higher_is_better=False),
    "rmse": Metric(("regression",), _rmse, higher_is_better=False),
    "r2": Metric(("regression",), _r2),
    "accuracy": Metric(("binary", "multiclass"), _accuracy, in_percent=True),
    "accuracy-sbm": Metric(("binary", "multiclass"), _accuracy_sbm, in_percent=True),
    "auroc": Metric(("binary", "multilabel"), _auroc),
    "ap": Metric(("binary", "multilabel"), _average_precision),
    "skill": Metric(("regression", "binary", "multiclass", "multilabel"), _skill, always_shown=False),
}
