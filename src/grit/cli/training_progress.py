"""Showing a training run: a bar on a terminal, a line per epoch otherwise, nothing when machines read."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grit.training.loop import Event


@contextmanager
def watching(metric: str, *, quiet: bool = False, many: str = "model") -> "Iterator[Callable[[Event], None]]":
    """A watcher for `grit.training.train.train`.

    Args:
        metric: That is shown.
        quiet: Whether nothing is shown.
        many: What there may be several of.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield _lines(metric, quiet, many)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("training", total=None, note="")
        best = ""
        graphs, mean = 0, 0.0

        def watch(event: "Event") -> None:
            nonlocal best, graphs, mean
            if event.metrics:
                best = f"val {metric} {event.metrics[metric]:.4f}"
                return
            graphs += event.graphs
            mean = event.loss if event.batch == 1 else 0.95 * mean + 0.05 * event.loss
            elapsed = bar.tasks[0].elapsed or 1e-9
            bar.update(
                task,
                total=event.members * event.epochs * event.batches,
                completed=(event.member * event.epochs + event.epoch) * event.batches + event.batch,
                description=_where(event, many),
                note=f"loss {mean:.4f}  {best}  {graphs / elapsed:.0f} graphs/s",
            )

        yield watch


def _lines(metric: str, quiet: bool, many: str) -> "Callable[[Event], None]":
    def watch(event: "Event") -> None:
        if event.metrics and not quiet:
            print(
                f"{_where(event, many)}: loss {event.loss:.4f}, val {metric} {event.metrics[metric]:.4f}",
                file=sys.stderr,
            )

    return watch


def _where(event: "Event", many: str) -> str:
    """Which epoch it is, and of which model or trial where there are several."""
    which = f"{many} {event.member + 1}/{event.members}, " if event.members > 1 else ""
    return f"{which}epoch {event.epoch + 1}/{event.epochs}"
