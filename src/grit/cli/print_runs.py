"""What ``grit runs`` prints."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from grit.training.run_list import RunSummary

RIGHT = ("parameters", "best epoch", "val", "test", "seconds")


def print_runs(runs: Sequence[RunSummary]) -> None:
    """A line per run, and below the table why some of them cannot be read."""
    console = Console()
    if not runs:
        console.print("no runs here. `grit train RECIPE` makes one in runs.", markup=False, highlight=False)
        return
    table = Table(box=None)
    for column in ("run", "state", "data", "model", "parameters", "best epoch", "metric", "val", "test", "seconds"):
        table.add_column(column, justify="right" if column in RIGHT else "left", overflow="fold")
    for run in runs:
        table.add_row(
            Text(run.path),
            run.state,
            Text(run.dataset or "-"),
            run.model or "-",
            "-" if run.num_parameters is None else f"{run.num_parameters:,}",
            "-" if run.best_epoch is None else f"{run.best_epoch} of {run.epochs}",
            run.metric or "-",
            figure(run.val),
            figure(run.test),
            "-" if run.seconds is None else f"{run.seconds:.0f}",
        )
    console.print(table)
    for run in runs:
        if run.reason:
            console.print(f"{run.path} cannot be read: {run.reason}", markup=False, highlight=False, soft_wrap=True)
    finished = [run.path for run in runs if run.state == "finished"]
    if len(finished) > 1:
        console.print(f"Next: grit compare {finished[0]} {finished[1]}", markup=False, highlight=False, soft_wrap=True)


def figure(value: float | None) -> str:
    """A metric with four digits, or a dash."""
    return "-" if value is None else f"{value:.4f}"
