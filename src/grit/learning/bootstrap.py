"""How sure a metric is: percentile intervals of the bootstrap, and the paired comparison of two predictors.

Rows are drawn with replacement, each with all its targets. A resample for which a metric is not defined, such as the AUROC of
one class, is left out; if more than half are, there is no interval. Draws are seeded: the same rows give the same interval.

Shapes: `n` rows, `T` targets, `O` outputs (T, or the number of classes), `R` resamples.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from grit.graphs.chunk import Array
from grit.graphs.schema import TaskSpec
from grit.learning.metrics import Metric, find_metric, shown_metrics

RESAMPLES = 1000
CONFIDENCE = 0.95
FEWEST_LABELS = 10
"""With fewer there is no interval: resamples of so few rows say little."""

_FEWEST_RESAMPLES = 50
_DRAWN_ROWS = 20_000_000  # of all resamples together: large tables get fewer, which are enough for them
_AT_ONCE = 1_000_000


class Estimate(NamedTuple):
    """A metric's value and the ends of its interval, NaN where there is none."""

    value: float
    low: float = float("nan")
    high: float = float("nan")


class Measurement(NamedTuple):
    """Metrics of one predictor on some rows.

    Attributes:
        labels: Known labels of each target.
        targets: For each target its metrics by name.
        average: Over the targets: MAE and RMSE of all labels together, else the mean over targets for which it is defined.
        resamples: Number of resamples behind the intervals; 0 without.
        confidence: That of the intervals.
    """

    labels: dict[str, int]
    targets: dict[str, dict[str, Estimate]]
    average: dict[str, Estimate]
    resamples: int
    confidence: float

    def as_json(self) -> dict[str, Any]:
        """The same as plain dictionaries."""

        def plain(found: dict[str, Estimate]) -> dict[str, Any]:
            return {name: dict(each._asdict()) for name, each in found.items()}

        return {
            "average": plain(self.average),
            "targets": {name: {"labels": self.labels[name], **plain(found)} for name, found in self.targets.items()},
            "resamples": self.resamples,
            "confidence": self.confidence,
        }


class Difference(NamedTuple):
    """A metric of one predictor minus that of another on the same rows, its interval, and how easily chance gives as much.

    Attributes:
        value: The difference.
        low: Lower end of its interval.
        high: Upper end.
        p: Two-sided: twice the share of resamples on the other side of 0. NaN where there is no interval.
    """

    value: float
    low: float
    high: float
    p: float


def measure(
    task: TaskSpec,
    outputs: Array,
    targets: Array,
    *,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
    seed: int = 0,
) -> Measurement:
    """All metrics of a task, of each target and over all of them, with bootstrap intervals.

    Args:
        task: What was predicted.
        outputs: (n, O) numbers or probabilities.
        targets: (n, T) with NaN where missing.
        resamples: How many to draw at most; 0 for no intervals. See `affordable_resamples`.
        confidence: Of the intervals.
        seed: Of the draws.
    """
    outputs, targets = outputs.astype(np.float64), targets.astype(np.float64)
    if task.kind == "mixed":
        return _measure_mixed(task, outputs, targets, resamples=resamples, confidence=confidence, seed=seed)
    metrics = shown_metrics(task.kind, task.metric)
    drawn = affordable_resamples(resamples, targets.size)
    parts = _parts(task, outputs, targets)
    spread: dict[str, list[Array]] = {name: [] for name in metrics}  # (R_chunk, T + 1) each; the last is the average
    for counts in _draws(len(targets), drawn, seed):
        for name, metric in metrics.items():
            each = [_resampled(metric, *part, counts) for part in parts]
            spread[name].append(np.stack([*each, _over_targets(metric, each, outputs, targets, counts)], 1))
    found: list[dict[str, Estimate]] = []
    known = [int((~np.isnan(targets[:, k])).sum()) for k in range(targets.shape[1])]
    for place, (some, truth) in enumerate([*parts, (outputs, targets)]):
        labels = [*known, max(known, default=0)][place]
        found.append({})
        for name, metric in metrics.items():
            value = metric.compute(some, truth)
            of_it = np.concatenate([chunk[:, place] for chunk in spread[name]]) if spread[name] else np.zeros(0)
            low, high = _ends(of_it, confidence) if labels >= FEWEST_LABELS else (float("nan"),) * 2
            found[-1][name] = Estimate(value, low, high)
    return Measurement(
        dict(zip(task.targets, known, strict=True)),
        dict(zip(task.targets, found[:-1], strict=True)),
        found[-1],
        drawn,
        confidence,
    )


def _measure_mixed(
    task: TaskSpec, outputs: Array, targets: Array, *, resamples: int, confidence: float, seed: int
) -> Measurement:
    """Targets of several kinds: each by the metrics of its kind, and the mean over those that have a metric."""
    drawn = affordable_resamples(resamples, targets.size)
    by_target, parts = task.by_target(), _parts(task, outputs, targets)
    each = [
        measure(
            part.spec.model_copy(update={"metric": task.metric}),
            *arrays,
            resamples=drawn,
            confidence=confidence,
            seed=seed,
        )
        for part, arrays in zip(by_target, parts, strict=True)
    ]
    shown = [shown_metrics(part.spec.kind, task.metric) for part in by_target]
    averages: dict[str, Estimate] = {}
    for name in dict.fromkeys(name for metrics in shown for name in metrics):
        of = [k for k, metrics in enumerate(shown) if name in metrics]
        spread = [
            _mean_of_defined([_resampled(shown[k][name], *parts[k], counts) for k in of])
            for counts in _draws(len(targets), drawn, seed)
        ]
        enough = max(each[k].labels[task.targets[k]] for k in of) >= FEWEST_LABELS
        low, high = _ends(np.concatenate(spread), confidence) if spread and enough else (float("nan"),) * 2
        values = np.array([each[k].targets[task.targets[k]][name].value for k in of])
        averages[name] = Estimate(float(_mean_of_defined([values[k : k + 1] for k in range(len(of))])[0]), low, high)
    return Measurement(
        {name: count for one in each for name, count in one.labels.items()},
        {name: found for one in each for name, found in one.targets.items()},
        averages,
        drawn,
        confidence,
    )


def compare_pair(
    task: TaskSpec,
    first: Array,
    second: Array,
    targets: Array,
    *,
    metric: str | None = None,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
    seed: int = 0,
) -> Difference:
    """The paired bootstrap: both predictors on the same resamples.

    Args:
        task: What was predicted.
        first: (n, O) outputs of one predictor.
        second: Of the other.
        targets: (n, T) with NaN where missing.
        metric: Its name; the task's own if not given.
        resamples: How many to draw at most.
        confidence: Of the interval.
        seed: Of the draws.
    """
    entry, *_ = [find_metric(metric or task.metric, part.kind) for part in task.parts or (task,)]
    first, second, targets = (each.astype(np.float64) for each in (first, second, targets))
    difference = _value(task, entry, first, targets) - _value(task, entry, second, targets)
    drawn = affordable_resamples(resamples, targets.size)
    chunks = []
    for counts in _draws(len(targets), drawn, seed):
        values = [
            _over_targets(entry, [_resampled(entry, *part, counts) for part in parts], outputs, targets, counts)
            for outputs, parts in ((each, _parts(task, each, targets)) for each in (first, second))
        ]
        chunks.append(values[0] - values[1])
    spread = np.concatenate(chunks) if chunks else np.zeros(0)
    if (~np.isnan(targets)).sum(0).max(initial=0) < FEWEST_LABELS:
        spread = np.full_like(spread, np.nan)
    low, high = _ends(spread, confidence)
    defined = spread[~np.isnan(spread)]
    if np.isnan(low):
        return Difference(difference, low, high, float("nan"))
    beyond = min((defined <= 0).sum(), (defined >= 0).sum())
    return Difference(difference, low, high, float(min(1.0, 2 * (beyond + 1) / (defined.size + 1))))


def affordable_resamples(resamples: int, labels: int) -> int:
    """How many of so many are drawn: all up to 20,000 labels, then fewer, 50 at least; a large table needs few."""
    return min(resamples, max(_FEWEST_RESAMPLES, _DRAWN_ROWS // max(1, labels)))


def _draws(rows: int, resamples: int, seed: int) -> Iterator[Array]:
    """How often each resample has each row, (R, n) in chunks of bounded size."""
    random = np.random.default_rng(seed)
    done, step = 0, max(1, _AT_ONCE // max(1, rows))
    while rows and done < resamples:
        part = min(step, resamples - done)
        yield np.stack([np.bincount(random.integers(0, rows, rows), minlength=rows) for _ in range(part)]).astype(float)
        done += part


def _parts(task: TaskSpec, outputs: Array, targets: Array) -> list[tuple[Array, Array]]:
    """Outputs and labels of each target; those of several classes go together."""
    return [(outputs[:, part.outputs], targets[:, [part.column]]) for part in task.by_target()]


def _value(task: TaskSpec, metric: Metric, outputs: Array, targets: Array) -> float:
    if task.kind != "mixed":
        return metric.compute(outputs, targets)
    return float(_mean_of_defined([np.array([metric.compute(*part)]) for part in _parts(task, outputs, targets)])[0])


def _resampled(metric: Metric, outputs: Array, targets: Array, counts: Array) -> Array:
    """The metric of one target for each resample, (R,)."""
    known = ~np.isnan(targets[:, 0])
    outputs, targets, counts = outputs[known], targets[known], counts[:, known]
    if metric.resampled is not None:
        return metric.resampled(outputs[:, 0] if outputs.shape[1] == 1 else outputs, targets[:, 0], counts)
    rows = np.arange(len(targets))
    drawn = (np.repeat(rows, times.astype(np.int64)) for times in counts)
    return np.array([metric.compute(outputs[each], targets[each]) for each in drawn])


def _over_targets(metric: Metric, each: list[Array], outputs: Array, targets: Array, counts: Array) -> Array:
    """What `Metric.compute` gives for all targets of each resample, (R,), from the values of each target."""
    if len(each) == 1:
        return each[0]
    if metric.over_all_labels:
        size = targets.shape[1]
        return _resampled(metric, outputs.T.reshape(-1, 1), targets.T.reshape(-1, 1), np.tile(counts, (1, size)))
    return _mean_of_defined(each)


def _mean_of_defined(each: list[Array]) -> Array:
    """The mean over targets of T arrays (R,), where it is defined: (R,)."""
    values = np.stack(each, 1)  # (R, T)
    defined = ~np.isnan(values)
    sums = np.where(defined, values, 0.0).sum(1)
    return np.where(defined.any(1), sums / np.maximum(defined.sum(1), 1), np.nan)


def _ends(values: Array, confidence: float) -> tuple[float, float]:
    defined = values[~np.isnan(values)]
    if not values.size or 2 * defined.size < values.size:
        return float("nan"), float("nan")
    low, high = np.quantile(defined, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)
