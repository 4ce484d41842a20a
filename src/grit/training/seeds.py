"""Several seeds: mean and deviation, and the paper's test against a published row."""

from math import sqrt
from typing import NamedTuple

import numpy as np


class Row(NamedTuple):
    """A published or measured row: mean, standard deviation, number of runs."""

    mean: float
    sd: float
    runs: int


def summarise(values: list[float]) -> Row:
    """Mean and sample deviation of several runs."""
    return Row(float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0, len(values))


def p_value(ours: Row, theirs: Row, *, higher_is_better: bool) -> float:
    """One-tailed two-sample t-test with equal variances: how likely so good a result is if ours is no better than theirs."""
    from scipy.stats import t

    freedom = ours.runs + theirs.runs - 2
    pooled = ((ours.runs - 1) * ours.sd**2 + (theirs.runs - 1) * theirs.sd**2) / freedom
    gain = (ours.mean - theirs.mean) * (1 if higher_is_better else -1)
    return float(t.sf(gain / sqrt(pooled * (1 / ours.runs + 1 / theirs.runs)), freedom))
