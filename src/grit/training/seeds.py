"""Several seeds: mean and deviation, and the paper's test against a published row."""

from typing import NamedTuple

import numpy as np


class SeedResults(NamedTuple):
    """A published or measured row: mean, standard deviation, number of runs."""

    mean: float
    sd: float
    runs: int


def summarise(values: list[float]) -> SeedResults:
    """Mean and sample deviation of several runs."""
    return SeedResults(float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0, len(values))


def p_value(ours: SeedResults, theirs: SeedResults, *, higher_is_better: bool, equal_variances: bool = True) -> float:
    """One-tailed two-sample t-test: how likely so good a result is if ours is no better than theirs.

    Args:
        ours: Mean, deviation and number of runs.
        theirs: The same of the other system.
        higher_is_better: Whether larger means are better.
        equal_variances: As the paper assumes; without it, Welch's test.
    """
    from scipy.stats import ttest_ind_from_stats

    better = "greater" if higher_is_better else "less"
    return float(ttest_ind_from_stats(*ours, *theirs, equal_var=equal_variances, alternative=better).pvalue)
