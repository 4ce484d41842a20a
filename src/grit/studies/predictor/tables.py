"""The tables and figures of the study."""

from collections.abc import Mapping, Sequence
from math import isnan
from typing import TYPE_CHECKING

import numpy as np

from grit.learning.metrics import METRICS
from grit.studies.predictor.molecule_data import MOLECULE_DATA, MoleculeData
from grit.studies.predictor.trial import CONFIDENCE, ONE, SEVERAL, Trial
from grit.studies.results_table import Cell, ResultsTable
from grit.studies.runs import mean_and_sd
from grit.training.seeds import summarise

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PROMISED = (0.86, 0.94)
"""Between these the mean coverage of intervals of 90 % should be."""

CLEAR = 0.05
_SHORT = (
    "The budget {!r} trains for few epochs so that it fits a laptop: it says how GRIT does after so short a training, not how "
    "good it can be. `--budget paper` trains by the preset 'default' to its end."
)
_DIVIDED = {
    "scaffold": "one scaffold split, seeds {}: mean ± s.d. over the seeds of models, forests and boosting",
    "random": "random splits, seeds {}: mean ± s.d. over the splits",
}
_PAIRED = {
    "scaffold": "p over seeds: paired t-test (training noise only, as the split is the same)",
    "random": "p over seeds: paired t-test over the splits, which share molecules, so that it is somewhat too small",
}
_NOTHING = "The budget 'smoke' trains a tiny model on few molecules: no number here says how good a predictor is."


def comparison_table(
    data: MoleculeData,
    split: str,
    trials: Sequence[Trial],
    seeds: Sequence[int],
    how: str,
    budget: str,
    remarks: Sequence[str] = (),
) -> ResultsTable:
    """A row for each predictor, the best first.

    Args:
        data: The data set.
        split: ``scaffold``, the same for all trials, or ``random``, another for each.
        trials: One for each seed.
        seeds: Of them.
        how: How GRIT was trained.
        budget: Of the study.
        remarks: What else is to be said.
    """
    better = METRICS[data.metric].higher_is_better
    names = sorted(_names(trials), key=lambda name: _mean(trials, name), reverse=better)
    rivals = [(ONE, "GRIT"), *([(SEVERAL, "ensemble")] if SEVERAL in names else [])]
    rows = [
        [
            trials[0].titles[name],
            mean_and_sd(summarise([trial.values[name] for trial in trials])),
            *(cell for one, _ in rivals for cell in _beside(trials, one, name)),
            round(float(np.mean([trial.seconds[name] for trial in trials])), 1),
        ]
        for name in names
    ]
    columns = [f"test {data.metric} {'↑' if better else '↓'}"]
    for _, title in rivals:
        columns += [f"{title} minus this", f"{title}: p over seeds", f"{title}: clear in"]
    train, val, test = trials[0].sizes
    best = trials[0].titles[names[0]]
    shown = [
        f"{train:,} / {val:,} / {test:,} molecules of train, validation and test, {trials[0].skipped:,} rows unreadable; "
        f"{_DIVIDED[split].format(', '.join(map(str, seeds)))}. The best mean: {best}.",
        f"GRIT: {how}, the epoch chosen by validation. Simple predictors: as they come, from the training molecules. No setting "
        "was chosen by the test molecules.",
        f"{_PAIRED[split]}. Clear in: seeds in which the paired bootstrap over test molecules has p < {CLEAR:g}.",
        "Seconds: wall time of training, the mean of the seeds; an upper bound where the machine did other work.",
        _NOTHING if budget == "smoke" else _SHORT.format(budget) if budget == "small" else "",
        *remarks,
    ]
    return ResultsTable(
        f"Predictors on {data.title}, {split} split{'s' * (split == 'random')}",
        ("predictor", *columns, "seconds"),
        rows,
        [s for s in shown if s],
    )


def _names(trials: Sequence[Trial]) -> list[str]:
    """The predictors that every trial has."""
    return [name for name in trials[0].values if all(name in trial.values for trial in trials)]


def _mean(trials: Sequence[Trial], name: str) -> float:
    return float(np.mean([trial.values[name] for trial in trials]))


def _beside(trials: Sequence[Trial], one: str, name: str) -> list[Cell]:
    """Difference, p over seeds, and in how many seeds it is clear; empty for itself."""
    if one == name or one not in trials[0].chance:
        return [None, None, None]
    differences = [trial.values[one] - trial.values[name] for trial in trials]
    chances = [trial.chance[one][name] for trial in trials]
    clear = sum(chance < CLEAR for chance in chances)
    p = paired_p(differences)
    return [
        f"{np.mean(differences):+.4f}",
        None if isnan(p) else f"{p:.2g}",
        f"{clear} of {len(trials)}",
    ]


def paired_p(differences: Sequence[float]) -> float:
    """Two-sided p of the paired t-test; NaN for a single difference or where all are equal."""
    from scipy.stats import ttest_1samp

    if len(differences) < 2 or np.ptp(differences) == 0:
        return float("nan")
    return float(ttest_1samp(differences, 0.0).pvalue)


def coverage_table(
    found: Mapping[tuple[str, str], Sequence[Trial]], how: Mapping[str, str], budget: str
) -> ResultsTable:
    """How many test values lie in their intervals, by data set and way to split.

    Args:
        found: Trials by data set and split.
        how: How GRIT was trained on each data set, and on what.
        budget: Of the study.
    """
    rows: list[list[Cell]] = []
    for (name, split), trials in found.items():
        for one in (ONE, SEVERAL):
            shares = _shares(trials, one)
            if not shares:
                continue
            row = summarise(shares)
            widths = [width for trial in trials if (width := trial.width.get(one)) is not None]
            rows.append(
                [
                    MOLECULE_DATA[name].title,
                    split,
                    trials[0].titles[one],
                    row.runs,
                    row.mean,
                    row.sd if row.runs > 1 else None,
                    min(shares),
                    max(shares),
                    PROMISED[0] <= row.mean <= PROMISED[1],
                    float(np.mean(widths)),
                    _mean(trials, one),
                    MOLECULE_DATA[name].metric,
                ]
            )
    columns = ("data", "split", "predictor", "fits", "mean coverage", "s.d.", "least", "most")
    low, high = PROMISED
    return ResultsTable(
        f"Coverage of {CONFIDENCE:.0%} intervals on test molecules",
        (*columns, f"mean in {low:.0%} to {high:.0%}", "mean width", "test error", "measured by"),
        rows,
        [
            "Intervals come from the validation molecules of each split. Random: each fit has a split of its own. Scaffold: one "
            "split, the fits differ in their seeds.",
            "Conformal intervals promise their coverage where test molecules come from the same source as the validation "
            "molecules: random splits. The scaffold split breaks that promise on purpose, and its rows show what is left.",
            *(f"{MOLECULE_DATA[name].title}: {words}." for name, words in how.items()),
            *([_NOTHING] if budget == "smoke" else []),
        ],
    )


def _shares(trials: Sequence[Trial], one: str) -> list[float]:
    return [share for trial in trials if (share := trial.coverage.get(one)) is not None]


def comparison_figure(data: MoleculeData, split: str, trials: Sequence[Trial]) -> "Figure":
    """The test metric of each predictor, a dot for each seed and a line at the mean, the best on top."""
    better = METRICS[data.metric].higher_is_better
    names = sorted(_names(trials), key=lambda name: _mean(trials, name), reverse=not better)
    rows = {trials[0].titles[name]: [trial.values[name] for trial in trials] for name in names}
    return _dots(rows, f"test {data.metric}, {'higher' if better else 'lower'} is better", f"{data.title}, {split}")


def coverage_figure(found: Mapping[tuple[str, str], Sequence[Trial]]) -> "Figure":
    """Coverage of each fit, a row for each data set and way to split, and where it should be."""
    rows = {
        f"{MOLECULE_DATA[name].title}, {split}\n{trials[0].titles[one]}": shares
        for (name, split), trials in reversed(list(found.items()))
        for one in (ONE, SEVERAL)
        if (shares := _shares(trials, one))
    }
    figure = _dots(rows, "share of test values in their intervals", f"{CONFIDENCE:.0%} intervals")
    axes = figure.axes[0]
    axes.axvline(CONFIDENCE, color="black", linewidth=0.8, linestyle="--", zorder=0)
    axes.axvspan(*PROMISED, color="#4b8b3b", alpha=0.15, linewidth=0, zorder=0)
    return figure


def _dots(rows: Mapping[str, Sequence[float]], label: str, title: str) -> "Figure":
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 1.2 + 0.5 * max(1, len(rows))), facecolor="white", layout="constrained")
    axes = figure.subplots()
    for place, (name, values) in enumerate(rows.items()):
        colour = "#c1121f" if "GRIT" in name else "#1d6fa5"
        axes.scatter(values, [place] * len(values), s=22, c=colour, alpha=0.6, linewidths=0)
        axes.plot([np.mean(values)] * 2, [place - 0.3, place + 0.3], color=colour, linewidth=2)
    axes.set_yticks(range(len(rows)), list(rows), fontsize=9)
    axes.set_ylim(-0.6, max(1, len(rows)) - 0.4)
    axes.set_xlabel(label)
    axes.set_title(title, fontsize=11)
    axes.grid(axis="x", alpha=0.25, linewidth=0.6)
    return figure
