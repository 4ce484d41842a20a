"""What ``grit compare`` prints and draws."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from grit.cli.ascii_plot import MARKS, text_plot
from grit.cli.json_text import json_text
from grit.cli.picture_files import save
from grit.cli.print_runs import figure
from grit.drawing.learning_curves import learning_curves_figure
from grit.training.comparison import ComparedRun, SeedGroup, differences, group_tests, seed_groups, why_no_test
from grit.training.seeds import SeedResults


def print_compared(runs: Sequence[ComparedRun], out: Path | None) -> None:
    """Figures, settings that differ, curves, and the test."""
    console = Console()
    _print_figures(console, runs)
    _print_differences(console, runs)
    for metric, curves in _curves(runs).items():
        if curves:
            _say(f"\nvalidation {metric}")
            letters = [_letter(number) for number, run in enumerate(runs) if run.name in curves]
            for line in text_plot(list(curves.values()), marks=letters):
                _say(line)
    groups = seed_groups(runs)
    _say("")
    for number, group in enumerate(groups, 1):
        if len(groups) < len(runs):
            _say(f"group {number}: {_named(group)}; test {group.runs[0].summary.metric} {_mean(group.results)}")
    _print_tests(groups)
    if out is not None:
        _say(f"learning curves: {out}")


def comparison_json(runs: Sequence[ComparedRun]) -> str:
    """The same for machines."""
    groups = seed_groups(runs)
    reason = why_no_test(groups)
    return json_text(
        {
            "runs": [{**run.summary.as_dict(), "seed": run.seed, "curve": run.curve} for run in runs],
            "differences": differences(runs),
            "groups": [{"runs": [run.name for run in group.runs], "test": group.values} for group in groups],
            "tests": [vars(test) for test in group_tests(groups)] if reason is None else [],
            "no_test": reason,
        }
    )


def save_curves(runs: Sequence[ComparedRun], out: Path) -> None:
    """Write the learning curves as a picture."""
    save(learning_curves_figure({metric: curves for metric, curves in _curves(runs).items() if curves}), out)


def _curves(runs: Sequence[ComparedRun]) -> dict[str, dict[str, list[float]]]:
    """By metric and run, the values of its epochs; runs without an epoch are left out."""
    found: dict[str, dict[str, list[float]]] = {}
    for run in runs:
        of_metric = found.setdefault(str(run.summary.metric), {})
        if run.curve:
            of_metric[run.name] = run.curve
    return found


def _print_figures(console: Console, runs: Sequence[ComparedRun]) -> None:
    table = Table(box=None)
    for column in ("", "run", "state", "seed", "best epoch", "metric", "val", "test", "parameters", "seconds"):
        table.add_column(
            column, justify="left" if column in ("", "run", "state", "metric") else "right", overflow="fold"
        )
    for number, run in enumerate(runs):
        found = run.summary
        table.add_row(
            _letter(number),
            Text(run.name),
            found.state,
            str(run.seed),
            "-" if found.best_epoch is None else f"{found.best_epoch} of {found.epochs}",
            found.metric,
            figure(found.val),
            figure(found.test),
            "-" if found.num_parameters is None else f"{found.num_parameters:,}",
            "-" if found.seconds is None else f"{found.seconds:.0f}",
        )
    console.print(table)


def _print_differences(console: Console, runs: Sequence[ComparedRun]) -> None:
    found = differences(runs)
    if not found:
        _say("\nall settings are equal")
        return
    table = Table(box=None)
    table.add_column("differs", overflow="fold")
    for number in range(len(runs)):
        table.add_column(_letter(number), justify="right", overflow="fold")
    for key, values in found.items():
        table.add_row(Text(key), *[Text("-" if value is None else str(value)) for value in values])
    console.print()
    console.print(table)


def _print_tests(groups: Sequence[SeedGroup]) -> None:
    reason = why_no_test(groups)
    if reason is not None:
        _say(f"no test of the difference: {reason}.")
        return
    tests = group_tests(groups)
    for test in tests:
        _say(
            f"group {test.better + 1} is better than group {test.other + 1}: "
            f"p = {test.two_tailed:.3g} (two-tailed t-test; {test.one_tailed:.3g} one-tailed)"
        )
    if len(tests) > 1:
        _say(f"{len(tests)} tests were made, and the p values are not corrected for that.")


def _named(group: SeedGroup) -> str:
    seeds = ", ".join(str(run.seed) for run in group.runs)
    return f"{group.runs[0].name}{' ...' if len(group.runs) > 1 else ''} (seed {seeds})"


def _mean(results: SeedResults) -> str:
    if results.runs == 0:
        return "-"
    return f"{results.mean:.4f}" + (f" ± {results.sd:.4f}" if results.runs > 1 else "")


def _letter(number: int) -> str:
    return MARKS[number] if number < len(MARKS) else str(number + 1)


def _say(text: str) -> None:
    Console().print(text, markup=False, highlight=False, soft_wrap=True)
