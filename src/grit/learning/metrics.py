"""Metrics over a whole split: the table `METRICS`.

Outputs are numbers or probabilities. A metric of several targets is the plain mean over those for which it is defined, but for
MAE and RMSE, which are taken over all labels at once. A class is guessed if its probability is above one half, or the highest.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import isnan, nan

import numpy as np

from grit.errors import GritError
from grit.graphs.chunk import Array
from grit.learning import resampled_metrics as resampled
from grit.learning.resampled_metrics import CALIBRATION_BINS, ResampledMetric


@dataclass(frozen=True)
class Metric:
    """One entry of `METRICS`.

    Attributes:
        kinds: The kinds of task that it is computed for: regression, binary, multiclass, multilabel.
        compute: (outputs (R, num_outputs), targets (R, T) with NaN where missing) -> its value, NaN where it is not defined.
        higher_is_better: Its direction.
        in_percent: Whether tables show it in percent, as the paper does.
        always_shown: Whether every task of these kinds is measured by it; if not, only one that names it as its own metric.
        over_all_labels: Whether its value for several targets is that of all their labels together, not the mean over targets.
        resampled: The same of many resamples at once, see `grit.learning.resampled_metrics`; without it bootstrap intervals take
            fewer draws.
    """

    kinds: tuple[str, ...]
    compute: Callable[[Array, Array], float]
    higher_is_better: bool = True
    in_percent: bool = False
    always_shown: bool = True
    over_all_labels: bool = False
    resampled: ResampledMetric | None = None


def metrics_of(kind: str) -> dict[str, Metric]:
    """The metrics of a kind of task, by name."""
    return {name: metric for name, metric in METRICS.items() if kind in metric.kinds}


def shown_metrics(kind: str, own: str) -> dict[str, Metric]:
    """What a task is measured by: its own metric, and those of its kind that are always shown."""
    return {name: metric for name, metric in metrics_of(kind).items() if metric.always_shown or name == own}


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

    return _per_target(outputs, targets, lambda o, y: float(r2_score(y, o)) if y.size > 1 and np.ptp(y) > 0 else nan)


def _spearman(outputs: Array, targets: Array) -> float:
    from scipy.stats import spearmanr

    def of_one(o: Array, y: Array) -> float:
        return float(spearmanr(o, y).statistic) if np.ptp(o) > 0 and np.ptp(y) > 0 else nan

    return _per_target(outputs, targets, of_one)


def _auroc(outputs: Array, targets: Array) -> float:
    from sklearn.metrics import roc_auc_score

    return _per_target(outputs, targets, lambda o, y: float(roc_auc_score(y, o)) if _has_both(y) else nan)


def _average_precision(outputs: Array, targets: Array) -> float:
    from sklearn.metrics import average_precision_score

    return _per_target(outputs, targets, lambda o, y: float(average_precision_score(y, o)) if _has_both(y) else nan)


def _accuracy(outputs: Array, targets: Array) -> float:
    return _per_label(outputs, targets, lambda o, y: float((resampled.guessed_class(o) == y).mean()))


def _balanced_accuracy(outputs: Array, targets: Array) -> float:
    from sklearn.metrics import recall_score

    def of_one(o: Array, y: Array) -> float:
        classes, guess = np.unique(y), resampled.guessed_class(o)
        return float(recall_score(y, guess, labels=classes, average="macro")) if classes.size > 1 else nan

    return _per_label(outputs, targets, of_one)


def _matthews(outputs: Array, targets: Array) -> float:
    from sklearn.metrics import matthews_corrcoef

    def of_one(o: Array, y: Array) -> float:
        return float(matthews_corrcoef(y, resampled.guessed_class(o))) if np.unique(y).size > 1 else nan

    return _per_label(outputs, targets, of_one)


def _f1(outputs: Array, targets: Array) -> float:
    from sklearn.metrics import f1_score

    def of_one(o: Array, y: Array) -> float:
        guess = resampled.guessed_class(o)
        if o.ndim == 2:
            return float(f1_score(y, guess, average="macro", zero_division=0.0))
        return float(f1_score(y, guess, zero_division=0.0)) if (y == 1).any() else nan

    return _per_label(outputs, targets, of_one)


def _log_loss(outputs: Array, targets: Array) -> float:
    return _per_label(outputs, targets, lambda o, y: float(resampled.surprise(o, y).mean()))


def _calibration_error(outputs: Array, targets: Array) -> float:
    """Expected calibration error, 15 bins of equal width:

        sum over bins b of  n_b / n * | mean probability in b - share that came true in b |

    of the probability of class 1, or of the likeliest of several classes.
    """

    def of_one(o: Array, y: Array) -> float:
        chance, true = resampled.confidence(o, y)
        gap = np.bincount(resampled.calibration_bins(chance), weights=chance - true, minlength=CALIBRATION_BINS)
        return float(np.abs(gap).sum() / y.size)

    return _per_label(outputs, targets, of_one)


def accuracy_sbm(guess: Array, truth: Array) -> float:
    """Mean over classes of the share found, over classes that occur as truth or guess; one that is only guessed counts 0."""
    classes = np.union1d(guess, truth)
    found = [float((guess[truth == c] == c).mean()) if (truth == c).any() else 0.0 for c in classes]
    return float(np.mean(found)) if found else nan


def _accuracy_sbm(outputs: Array, targets: Array) -> float:
    return _per_label(outputs, targets, lambda o, y: accuracy_sbm(resampled.guessed_class(o), y.astype(np.int64)))


def _skill(outputs: Array, targets: Array) -> float:
    """R2, of classes that of their probabilities (the Brier skill score): 1 for who knows, 0 for who knows the shares alone.

    It means the same for numbers and classes, so that it can be averaged over both.
    """
    if outputs.shape[1] == targets.shape[1]:
        return _r2(outputs, targets)
    known = ~np.isnan(targets[:, 0])
    came = np.eye(outputs.shape[1])[targets[known, 0].astype(np.int64)]  # (R, C)
    spread = np.square(came - came.mean(0)).sum() if came.size else 0.0
    return 1 - float(np.square(outputs[known] - came).sum() / spread) if spread > 0 else nan


def _has_both(y: Array) -> bool:
    return np.unique(y).size == 2


def _over_known(outputs: Array, targets: Array, metric: Callable[[Array, Array], float]) -> float:
    known = ~np.isnan(targets)
    return metric(outputs[known], targets[known]) if known.any() else nan


def _per_label(outputs: Array, targets: Array, metric: Callable[[Array, Array], float]) -> float:
    """`_per_target`; one target of several classes has an output for each, and they go together."""
    if outputs.shape[1] == targets.shape[1]:
        return _per_target(outputs, targets, metric)
    return _over_known(outputs, targets[:, 0], metric)


def _per_target(outputs: Array, targets: Array, metric: Callable[[Array, Array], float]) -> float:
    """Plain mean over the targets for which the metric is defined."""
    values = [_over_known(outputs[:, column], targets[:, column], metric) for column in range(targets.shape[1])]
    defined = [value for value in values if not isnan(value)]
    return float(np.mean(defined)) if defined else nan


_LABELS = ("binary", "multilabel")
_CLASSES = ("binary", "multiclass", "multilabel")

METRICS: dict[str, Metric] = {
    "mae": Metric(("regression",), _mae, higher_is_better=False, over_all_labels=True, resampled=resampled.mean_error),
    "rmse": Metric(
        ("regression",), _rmse, higher_is_better=False, over_all_labels=True, resampled=resampled.root_mean_square
    ),
    "r2": Metric(("regression",), _r2, resampled=resampled.explained),
    "spearman": Metric(("regression",), _spearman, resampled=resampled.rank_correlation),
    "auroc": Metric(_LABELS, _auroc, resampled=resampled.area_under_roc),
    "ap": Metric(_LABELS, _average_precision, resampled=resampled.average_precision),
    "accuracy": Metric(_CLASSES, _accuracy, in_percent=True, resampled=resampled.share_right),
    "balanced-accuracy": Metric(_CLASSES, _balanced_accuracy, in_percent=True, resampled=resampled.mean_recall),
    "mcc": Metric(_CLASSES, _matthews, resampled=resampled.correlation),
    "f1": Metric(_CLASSES, _f1, resampled=resampled.f1),
    "log-loss": Metric(_CLASSES, _log_loss, higher_is_better=False, resampled=resampled.mean_surprise),
    "calibration-error": Metric(
        _CLASSES, _calibration_error, higher_is_better=False, resampled=resampled.calibration_error
    ),
    # Of targets of several kinds.
    "skill": Metric(("regression", *_CLASSES), _skill, always_shown=False, resampled=resampled.skill),
    # Of PATTERN and CLUSTER. `balanced-accuracy` is what others call the mean recall.
    "accuracy-sbm": Metric(
        ("binary", "multiclass"),
        _accuracy_sbm,
        in_percent=True,
        always_shown=False,
        resampled=resampled.mean_recall_of_named,
    ),
}
