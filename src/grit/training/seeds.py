"""Several seeds: mean and deviation, and the paper's test against a published row."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from grit.learning.metrics import METRICS
from grit.recipe.config import Recipe

_PAPER_SEEDS = 4


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


def seeds_beside_paper(recipe: Recipe, results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The test metric of runs with several seeds, and the paper's row with a test of the difference, if there is one."""
    metric = METRICS[results[0]["metric"]]
    values = [result["test"][results[0]["metric"]] for result in results]
    ours = summarise([value * (100.0 if metric.in_percent else 1.0) for value in values])
    found: dict[str, Any] = {"metric": results[0]["metric"], "values": values, **ours._asdict()}
    paper = recipe.paper
    if paper is not None and paper.mean is not None and paper.sd is not None and ours.runs > 1:
        theirs = SeedResults(paper.mean, paper.sd, _PAPER_SEEDS)
        found["paper"] = theirs._asdict()
        found["p_better_than_paper"] = p_value(ours, theirs, higher_is_better=metric.higher_is_better)
    return found
