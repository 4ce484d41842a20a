"""Runs side by side: where their configurations differ, their figures, and whether a difference is more than chance.

Runs that differ in ``train.seed`` alone form a group. Groups are compared by the t-test of `grit.training.seeds` on their test
metric, if each has two seeds or more and all were measured on the same data.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import combinations
from pathlib import Path
from typing import Any

from grit.errors import GritError
from grit.learning.metrics import METRICS
from grit.training.dotted import different_keys, dotted
from grit.training.initial_weights import read_record
from grit.training.run_folder import RunData, RunFolder
from grit.training.run_list import RunSummary, find_run_folders, summary_of
from grit.training.seeds import SeedResults, p_value, summarise


@dataclass(frozen=True)
class ComparedRun:
    """A run with what a comparison needs of it.

    Attributes:
        name: As the user named it.
        summary: Its figures.
        settings: All that its result depends on, by dotted key.
        data: What it was trained on.
        curve: Validation metric of each epoch.
    """

    name: str
    summary: RunSummary
    settings: dict[str, Any]
    data: RunData
    curve: list[float]

    @property
    def seed(self) -> int:
        """Of the run."""
        return int(self.settings["train.seed"])


@dataclass(frozen=True)
class SeedGroup:
    """Runs that differ in their seed alone, each seed once."""

    runs: list[ComparedRun]

    @property
    def results(self) -> SeedResults:
        """Mean and deviation on the test split, of the runs that have been tested."""
        return summarise(self.values) if self.values else SeedResults(float("nan"), 0.0, 0)

    @property
    def values(self) -> list[float]:
        """Metric on the test split of each run that has been tested."""
        return [run.summary.test for run in self.runs if run.summary.test is not None]


@dataclass(frozen=True)
class GroupTest:
    """Whether the better of two groups is better by more than chance.

    Attributes:
        better: Number of the group with the better mean.
        other: Number of the other.
        one_tailed: `p_value`. The direction was chosen by looking, so ``two_tailed`` is the one to quote.
        two_tailed: Twice as much, at most 1.
    """

    better: int
    other: int
    one_tailed: float
    two_tailed: float


def read_runs(paths: Sequence[Path]) -> list[ComparedRun]:
    """The runs that a user named; a folder that holds runs, such as one of several seeds, stands for all of them."""
    found = {run.resolve(): run for path in paths for run in _run_folders(path)}
    if len(found) < 2:
        raise GritError(
            f"there is nothing to compare: {len(found)} run in {', '.join(map(str, paths))}. Name two or more."
        )
    return [_read(path) for path in found.values()]


def differences(runs: Sequence[ComparedRun]) -> dict[str, list[Any]]:
    """The settings that are not the same in all runs: the value of each run, None where it has no such setting."""
    keys = different_keys(*[run.settings for run in runs])
    return {key: [run.settings.get(key) for run in runs] for key in keys}


def seed_groups(runs: Sequence[ComparedRun]) -> list[SeedGroup]:
    """Runs that differ in ``train.seed`` alone together, in the order in which they were named."""
    groups: list[dict[int, ComparedRun]] = []
    for run in runs:
        for group in groups:
            first = next(iter(group.values()))
            if set(different_keys(first.settings, run.settings)) <= {"train.seed"}:
                group.setdefault(run.seed, run)  # a copy of a run is no second measurement
                break
        else:
            groups.append({run.seed: run})
    return [SeedGroup(list(group.values())) for group in groups]


def why_no_test(groups: Sequence[SeedGroup]) -> str | None:
    """Why the t-test cannot be made; None if it can."""
    if len(groups) < 2:
        return "the runs differ in their seed alone: there is nothing to test"
    first = groups[0].runs[0]
    for group in groups[1:]:
        run = group.runs[0]
        if run.summary.metric != first.summary.metric:
            return f"the runs are measured by {first.summary.metric} and {run.summary.metric}, which cannot be compared"
        if _tested_on(run.data) != _tested_on(first.data):
            return (
                f"{first.name} and {run.name} were tested on other data or splits, so their figures cannot be compared"
            )
    few = [group.runs[0].name for group in groups if len(group.values) < 2]
    if few:
        return (
            f"a test takes two finished seeds or more of each configuration; there are fewer of {', '.join(few[:4])}. "
            "`grit train RECIPE --seeds 0,1,2,3` trains several"
        )
    if any(group.results.sd == 0 for group in groups):
        return "the seeds of a configuration have equal results, so there is no deviation to test against"
    return None


def group_tests(groups: Sequence[SeedGroup]) -> list[GroupTest]:
    """Every pair of groups compared by the t-test, the better mean first."""
    tests = []
    higher = METRICS[str(groups[0].runs[0].summary.metric)].higher_is_better
    for a, b in combinations(range(len(groups)), 2):
        means = groups[a].results.mean, groups[b].results.mean
        better, other = (a, b) if (means[0] > means[1]) == higher else (b, a)
        p = p_value(groups[better].results, groups[other].results, higher_is_better=higher)
        tests.append(GroupTest(better, other, p, min(1.0, 2 * p)))
    return tests


def _run_folders(path: Path) -> list[Path]:
    if (path / "config.yaml").is_file() or not path.is_dir():
        return [RunFolder.open(path).path]
    found = find_run_folders([path])
    if not found:
        raise GritError(f"{str(path)!r} is not a run folder, and there is none below it.")
    return found


def _read(path: Path) -> ComparedRun:
    folder, summary = RunFolder.open(path), summary_of(path)
    if summary.state == "broken":
        raise GritError(f"the run {str(path)!r} cannot be read: {summary.reason}")
    data, init = folder.data(), read_record(folder)
    settings = dotted(folder.recipe().model_dump(mode="json", exclude={"paper"}))
    settings["init"] = None if init is None else f"{init.part} of {init.sha256[:12]}"
    known = json.dumps([data.checksum, sorted(data.split_checksums.items())])
    settings["data"] = f"{data.name} {sha256(known.encode()).hexdigest()[:8]}"
    curve = [float(line["val"][summary.metric]) for line in folder.history()]
    return ComparedRun(str(path), summary, settings, data, curve)


def _tested_on(data: RunData) -> tuple[str, ...]:
    """What tells the data and the test split of a run from others."""
    return (data.checksum or "", data.split_checksums.get("test", ""))
