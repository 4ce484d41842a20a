"""Conformal prediction: how far predictions may be wrong, from how wrong they were on molecules that took no part in training.

A score says how badly a prediction fits the truth. Of n scores of held-out molecules, the score of a new one is at most the
k-th smallest, k = ceil((n + 1) * confidence), with a probability of at least the confidence, if old and new molecules come
from one source in no particular order (Vovk et al.; Lei et al., 2018). Where k > n no finite bound has that probability.

numbers   score |y - p| / (s + b); s: spread of an ensemble at that molecule, b: its mean, so that a spread that happens to be
          tiny promises nothing. Interval p ± q * (s + b). A single model has s + b = 1.
classes   score 1 - p of the true class, per class (Mondrian): a rare class is covered as often as a common one. The set holds
          every class whose score would be at most its q, and the likeliest class in any case.

Shape letters: R rows, C classes.
"""

from collections.abc import Sequence
from math import ceil, inf

import numpy as np

from grit.errors import GritError
from grit.graphs.chunk import Array


def check_confidence(confidence: float) -> float:
    """Raise unless it is a share between 0 and 1."""
    if not 0.0 < confidence < 1.0:
        raise GritError(f"--confidence must be between 0 and 1, such as 0.9 for 90 %, got {confidence:g}.")
    return confidence


def rows_needed(confidence: float) -> int:
    """The fewest scores with which there is a finite bound at this confidence."""
    return ceil(confidence / (1.0 - confidence) - 1e-9)


def score_bound(scores: Array, confidence: float) -> float:
    """The finite-sample quantile of sorted scores; infinite where they are too few."""
    rank = ceil((len(scores) + 1) * confidence - 1e-9)
    return float(scores[rank - 1]) if 1 <= rank <= len(scores) else inf


def widths(spread: Array | None, offset: float | None, count: int) -> Array:
    """The scale of each row's interval, (R,): ``s + b``, or 1 where there is no spread."""
    return np.ones(count) if spread is None or offset is None else spread + offset


def interval_scores(truth: Array, predicted: Array, scale: Array) -> Array:
    """Sorted scores of the rows whose truth is known; all (R,)."""
    known = np.isfinite(truth) & np.isfinite(predicted)
    return np.sort(np.abs(truth - predicted)[known] / scale[known])


def class_scores(truth: Array, chances: Array) -> list[Array]:
    """For each class the sorted scores of the rows that belong to it; truth (R,) with NaN where unknown, chances (R, C)."""
    return [np.sort(1.0 - chances[truth == number, number]) for number in range(chances.shape[1])]


def class_sets(chances: Array, scores: Sequence[Array], confidence: float) -> Array:
    """Which classes cannot be excluded, (R, C) of bool."""
    bounds = np.array([score_bound(each, confidence) for each in scores])
    inside: Array = 1.0 - chances <= bounds
    inside[np.arange(len(chances)), chances.argmax(1)] = True
    return inside


def tempered(chances: Array, temperature: float) -> Array:
    """Probabilities (R, C) after division of their logarithms by a temperature: above 1 less sure, below 1 surer."""
    logs = np.log(np.clip(chances.astype(np.float64), 1e-12, 1.0)) / temperature
    shares = np.exp(logs - logs.max(1, keepdims=True))
    result: Array = shares / shares.sum(1, keepdims=True)
    return result


def fitted_temperature(truth: Array, chances: Array) -> float:
    """The temperature at which the true classes are likeliest; truth (R,) with NaN where unknown, chances (R, C).

    ``ln T`` has a standard normal prior, so that few rows, or rows that are all right, do not lead to extremes.
    """
    known = np.isfinite(truth)
    numbers, chances = truth[known].astype(np.int64), chances[known]

    def cost(log_temperature: float) -> float:
        likely = tempered(chances, float(np.exp(log_temperature)))[np.arange(numbers.size), numbers]
        return float(-np.log(np.maximum(likely, 1e-300)).sum() + 0.5 * log_temperature**2)

    low, high = -3.0, 3.0
    for _ in range(4):  # the cost is smooth, and convex in 1 / T: a finer and finer grid finds its minimum
        grid = np.linspace(low, high, 25)
        best = int(np.argmin([cost(each) for each in grid.tolist()]))
        low, high = grid[max(0, best - 1)], grid[min(24, best + 1)]
    return float(np.exp((low + high) / 2)) if numbers.size else 1.0
