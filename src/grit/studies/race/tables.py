"""The table and the figure of a race."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from grit.drawing.labelled_scatter import LabelledPoint, labelled_scatter
from grit.learning.metrics import METRICS
from grit.studies.race.budget import RaceBudget
from grit.studies.race.entry import Entry
from grit.studies.results_table import Cell, ResultsTable
from grit.studies.runs import mean_and_sd
from grit.studies.study_data import StudyData
from grit.studies.systems import APPROXIMATION, GRIT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BUDGET_REMARKS = {
    "epochs": "Each system trained for the same number of epochs, with its own published optimizer, rate and schedule; cosine "
    "and linear schedules and the warm-up are shortened in proportion. Systems that were tuned for other lengths may look worse "
    "here than they are.",
    "time": "Each system trained for the same wall time on this machine: as many epochs as fit by steps that were timed before, "
    "schedule and warm-up in proportion, and the clock ends a run anyway, in the middle of an epoch if need be.",
    "published": "Each system trained as its recipe says.",
}


def race_table(
    entries: Mapping[str, Entry], data: StudyData, budget: RaceBudget, size: str, seeds: Sequence[int], machine: str
) -> ResultsTable:
    """One row per system, the best first, those that failed last.

    Args:
        entries: By recipe.
        data: What all were trained on.
        budget: What each was given.
        size: How much data, ``smoke``, ``small`` or ``paper``.
        seeds: Of the runs.
        machine: Where they were made, in words.
    """
    metric = _metric(entries)
    better = METRICS[metric].higher_is_better
    done = [name for name, entry in entries.items() if entry.results]
    order = sorted(done, key=lambda name: entries[name].outcome.row.mean, reverse=better)
    rows = [_row(name, entries[name]) for name in [*order, *(name for name in entries if name not in done)]]
    return ResultsTable(
        f"Race on {data.store.name}, {budget.words}",
        (
            "system",
            "recipe",
            "parameters",
            "epochs",
            "runs",
            f"ours, test {metric} {'↑' if better else '↓'}",
            "published",
            "minutes",
            "ms per step",
            "ms of it for the batch",
            "s once",
            "memory, MB",
            "remark",
        ),
        rows,
        [each for each in _remarks(entries, data, budget, size, seeds, machine) if each],
    )


def _row(name: str, entry: Entry) -> list[Cell]:
    system, probe = entry.system, entry.probe
    row: list[Cell] = [system.marked, name]
    if entry.results:
        outcome = entry.outcome
        row += [outcome.num_parameters, _epochs(entry), len(entry.results), mean_and_sd(outcome.row), system.paper]
        row += [round(entry.minutes, 2)]
    else:
        row += [None, None, 0, None, system.paper, None]
    if probe is None:
        row += [None] * 4
    else:
        memory = None if probe.megabytes is None else round(probe.megabytes)
        row += [round(1e3 * (probe.make + probe.step), 1), round(1e3 * probe.make, 1), round(probe.once, 1), memory]
    return [*row, f"FAILED: {entry.failure}" if entry.failure else None]


def _epochs(entry: Entry) -> str:
    done = f"{entry.epochs_done:.3g}" if entry.epochs_done < 1000 else f"{entry.epochs_done:.0f}"
    return done if entry.epochs_done == entry.epochs else f"{done} of {entry.epochs}"


def _remarks(
    entries: Mapping[str, Entry],
    data: StudyData,
    budget: RaceBudget,
    size: str,
    seeds: Sequence[int],
    machine: str,
) -> list[str]:
    return [
        f"{data.sizes} graphs of train, validation and test; seeds {', '.join(map(str, seeds))}; the test result at the best "
        "epoch by validation, mean ± s.d. of the seeds.",
        f"{data.note}." if data.note else "",
        BUDGET_REMARKS[budget.kind],
        "Epochs: fewer than planned where the clock, a plateau of the learning rate or the recipe's patience ended a run.",
        "Minutes: training and validation of one run, encodings and structures included. A step makes its batch from the store "
        "with its encoding, and learns from it. Structures such as rings are computed once and kept: seconds for all graphs.",
        "Memory: growth of a fresh process from before the model is built to the peak, over some steps, one with the largest "
        "graphs; on a GPU what torch allocates there.",
        f"Measured on: {machine}.",
        "Published: the figure of the GRIT paper's tables; where they have none, of the system's own publication.",
        f"The budget {size!r} changes the models: at most two layers, batches of 8. No number here says how good a system is."
        if size == "smoke"
        else "",
        ""
        if data.is_benchmark and budget.kind == "published"
        else "NOT COMPARABLE WITH THE PAPER: the published figures are of the published training, on all of the data set. "
        "They stand here for scale.",
        APPROXIMATION if any(entry.system.approximation for entry in entries.values()) else "",
    ]


def race_figure(entries: Mapping[str, Entry], data: StudyData, budget: RaceBudget) -> "Figure":
    """Test error against training time, a point per system."""
    metric = _metric(entries)
    kind = METRICS[metric]
    top = 100 if kind.in_percent else 1
    points = []
    for entry in entries.values():
        if entry.results:
            row = entry.outcome.row
            error = top - row.mean if kind.higher_is_better else row.mean
            points.append(LabelledPoint(entry.system.marked, entry.system.family, entry.minutes, error, row.sd))
    name = f"{top} - {metric}" if kind.higher_is_better else metric
    return labelled_scatter(
        points,
        families=(GRIT, "message passing", "transformer"),
        x_label="minutes of training, one run",
        y_label=f"test {name}, lower is better",
        title=f"{data.store.name}, {budget.words}",
    )


def _metric(entries: Mapping[str, Entry]) -> str:
    metric: str = next(entry.results[0]["metric"] for entry in entries.values() if entry.results)
    return metric
