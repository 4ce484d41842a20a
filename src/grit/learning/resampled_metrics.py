"""Metrics of many resamples of the same rows at once, for bootstrap intervals.

A resample draws n of n rows with replacement, so it is a vector of counts, and most metrics are sums over rows: those of all
resamples are one product of matrices. `grit.learning.metrics` has the definitions; each function here gives what they give for
the rows of a resample, NaN where that is not defined.

Shapes: `R` resamples, `n` rows with a known target, `C` classes. Outputs are (n,), of several classes (n, C); targets (n,);
counts (R, n) float64.
"""

from collections.abc import Callable

import numpy as np

from grit.graphs.chunk import Array

ResampledMetric = Callable[[Array, Array, Array], Array]
CALIBRATION_BINS = 15
LEAST_PROBABILITY = 1e-7  # of the true class, as the logarithm of 0 is infinite: about the precision of 32-bit numbers


def guessed_class(outputs: Array) -> Array:
    """The likeliest class, (n,): probabilities of class 1 (n,), or of all classes (n, C)."""
    return (outputs > 0.5).astype(np.int64) if outputs.ndim == 1 else outputs.argmax(1)


def surprise(outputs: Array, targets: Array) -> Array:
    """Minus the logarithm of the probability that the true class was given, (n,)."""
    rows, label = np.arange(len(targets)), targets.astype(np.int64)
    chance = np.where(label == 1, outputs, 1 - outputs) if outputs.ndim == 1 else outputs[rows, label]
    minus_log: Array = -np.log(np.clip(chance, LEAST_PROBABILITY, 1.0))
    return minus_log


def confidence(outputs: Array, targets: Array) -> tuple[Array, Array]:
    """A probability that was given, and whether it came true, (n,) each: of class 1, or of the likeliest of several classes."""
    if outputs.ndim == 1:
        return outputs, targets
    guess = outputs.argmax(1)
    return outputs.max(1), (guess == targets.astype(np.int64)).astype(np.float64)


def calibration_bins(chance: Array) -> Array:
    """The bin of each probability among `CALIBRATION_BINS` of equal width, (n,)."""
    return np.clip((chance * CALIBRATION_BINS).astype(np.int64), 0, CALIBRATION_BINS - 1)


def mean_error(outputs: Array, targets: Array, counts: Array) -> Array:
    """Mean absolute error."""
    return _mean(np.abs(outputs - targets), counts)


def root_mean_square(outputs: Array, targets: Array, counts: Array) -> Array:
    """Root of the mean squared error."""
    return np.sqrt(_mean(np.square(outputs - targets), counts))


def explained(outputs: Array, targets: Array, counts: Array) -> Array:
    """R2."""
    centred = targets - targets.mean() if len(targets) else targets
    total = _mean(np.square(centred), counts) - np.square(_mean(centred, counts))
    varied = _spread(targets, counts) > 0
    return _where(varied, 1 - _mean(np.square(outputs - targets), counts) / np.where(varied, total, 1.0))


def skill(outputs: Array, targets: Array, counts: Array) -> Array:
    """R2; of several classes that of all their probabilities together."""
    if outputs.ndim == 1:
        return explained(outputs, targets, counts)
    came = np.eye(outputs.shape[1])[targets.astype(np.int64)]  # (n, C)
    errors = counts @ np.square(outputs - came).sum(1)  # (R,)
    rows = counts.sum(1)
    spread = rows - np.square(counts @ came).sum(1) / np.maximum(rows, 1)  # of ones and zeros, each row with one one
    return np.where(spread > 1e-9, 1 - errors / np.maximum(spread, 1e-9), np.nan)


def rank_correlation(outputs: Array, targets: Array, counts: Array) -> Array:
    """Spearman's correlation: that of the ranks within each resample."""
    defined = (_spread(outputs, counts) > 0) & (_spread(targets, counts) > 0)
    a, b = (_ranks(values, counts) for values in (outputs, targets))  # (R, n) each
    size = counts.sum(1, keepdims=True)
    a, b = (ranks - (counts * ranks).sum(1, keepdims=True) / np.maximum(size, 1) for ranks in (a, b))
    both = np.sqrt((counts * a * a).sum(1) * (counts * b * b).sum(1))
    return _where(defined, (counts * a * b).sum(1) / np.where(defined, both, 1.0))


def share_right(outputs: Array, targets: Array, counts: Array) -> Array:
    """Accuracy."""
    return _mean((guessed_class(outputs) == targets).astype(np.float64), counts)


def mean_recall(outputs: Array, targets: Array, counts: Array) -> Array:
    """Balanced accuracy."""
    table = _confusion(outputs, targets, counts)  # (R, true, guessed)
    truth = table.sum(2)
    recall = np.einsum("rcc->rc", table) / np.maximum(truth, 1)
    present = truth > 0
    return _where(present.sum(1) > 1, recall.sum(1) / np.maximum(present.sum(1), 1))


def mean_recall_of_named(outputs: Array, targets: Array, counts: Array) -> Array:
    """`grit.learning.metrics.accuracy_sbm`: a class that is guessed and never true counts 0."""
    table = _confusion(outputs, targets, counts)
    truth, named = table.sum(2), (table.sum(1) + table.sum(2)) > 0
    recall = np.einsum("rcc->rc", table) / np.maximum(truth, 1)
    return _where(named.any(1), recall.sum(1) / np.maximum(named.sum(1), 1))


def correlation(outputs: Array, targets: Array, counts: Array) -> Array:
    """Matthews' correlation coefficient."""
    table = _confusion(outputs, targets, counts)
    truth, guess, size = table.sum(2), table.sum(1), table.sum((1, 2))
    covariance = np.einsum("rcc->r", table) * size - (truth * guess).sum(1)
    scale = (size**2 - (guess**2).sum(1)) * (size**2 - (truth**2).sum(1))
    found = np.where(scale > 0, covariance / np.sqrt(np.where(scale > 0, scale, 1.0)), 0.0)
    return _where((truth > 0).sum(1) > 1, found)


def f1(outputs: Array, targets: Array, counts: Array) -> Array:
    """F1 of class 1, or its mean over the classes that are true or guessed."""
    table = _confusion(outputs, targets, counts)
    named = table.sum(1) + table.sum(2)
    each = 2 * np.einsum("rcc->rc", table) / np.maximum(named, 1)
    if outputs.ndim == 1:
        return _where(table[:, 1].sum(1) > 0, each[:, 1])
    return _where((named > 0).any(1), each.sum(1) / np.maximum((named > 0).sum(1), 1))


def mean_surprise(outputs: Array, targets: Array, counts: Array) -> Array:
    """Log loss."""
    return _mean(surprise(outputs, targets), counts)


def calibration_error(outputs: Array, targets: Array, counts: Array) -> Array:
    """Expected calibration error: over the bins, how far the mean probability is from the share that came true."""
    chance, true = confidence(outputs, targets)
    bins = np.eye(CALIBRATION_BINS)[calibration_bins(chance)]  # (n, bins)
    gap = np.abs(counts @ (bins * (chance - true)[:, None])).sum(1)
    size = counts.sum(1)
    return _where(size > 0, gap / np.maximum(size, 1))


def area_under_roc(outputs: Array, targets: Array, counts: Array) -> Array:
    """AUROC: the share of pairs of a positive and a negative in which the positive has the higher output; ties count half."""
    positive, negative = _by_output(outputs, targets, counts)  # (R, distinct outputs, descending)
    above = np.cumsum(positive, 1) - 0.5 * positive
    positives, negatives = positive.sum(1), negative.sum(1)
    defined = (positives > 0) & (negatives > 0)
    return _where(defined, (negative * above).sum(1) / np.where(defined, positives * negatives, 1.0))


def average_precision(outputs: Array, targets: Array, counts: Array) -> Array:
    """Average precision: the precision at each distinct output, weighted by the positives that it adds."""
    positive, negative = _by_output(outputs, targets, counts)
    found, taken = np.cumsum(positive, 1), np.cumsum(positive + negative, 1)
    positives, negatives = positive.sum(1), negative.sum(1)
    defined = (positives > 0) & (negatives > 0)
    precision = found / np.maximum(taken, 1)
    return _where(defined, (positive * precision).sum(1) / np.where(defined, positives, 1.0))


def _mean(values: Array, counts: Array) -> Array:
    size = counts.sum(1)
    return _where(size > 0, (counts @ values) / np.maximum(size, 1))


def _where(defined: Array, values: Array) -> Array:
    return np.where(defined, values, np.nan)


def _spread(values: Array, counts: Array) -> Array:
    """How many distinct values a resample has beyond the first, (R,); 0 without rows."""
    order, starts = _groups(values)
    if not len(values):
        return np.zeros(len(counts))
    distinct: Array = (np.add.reduceat(counts[:, order], starts, axis=1) > 0).sum(1)
    return distinct - 1


def _groups(values: Array) -> tuple[Array, Array]:
    """The order of the values, ascending, and where in it each distinct value begins."""
    order = np.argsort(values, kind="stable")
    return order, np.flatnonzero(np.diff(values[order], prepend=np.nan) != 0)


def _ranks(values: Array, counts: Array) -> Array:
    """Rank of each row's value within each resample, (R, n); equal values share the middle of theirs."""
    order, starts = _groups(values)
    size = np.add.reduceat(counts[:, order], starts, axis=1)  # (R, distinct)
    middle = np.cumsum(size, 1) - (size - 1) / 2
    place = np.empty(len(values), dtype=np.int64)
    place[order] = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(values)))
    return middle[:, place]


def _by_output(outputs: Array, targets: Array, counts: Array) -> tuple[Array, Array]:
    """Positives and negatives of each resample at each distinct output, highest first."""
    if not len(targets):
        return counts, counts
    order, starts = _groups(-outputs)
    ordered, label = counts[:, order], targets[order]
    positive, negative = (np.add.reduceat(ordered * part, starts, axis=1) for part in (label, 1 - label))
    return positive, negative


def _confusion(outputs: Array, targets: Array, counts: Array) -> Array:
    """Rows of each true and guessed class, (R, C, C)."""
    classes = 2 if outputs.ndim == 1 else outputs.shape[1]
    cell = targets.astype(np.int64) * classes + guessed_class(outputs)
    return (counts @ np.eye(classes * classes)[cell]).reshape(len(counts), classes, classes)
