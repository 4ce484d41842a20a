"""Progress bars: shown on a terminal, silent when piped."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


def progress_bar() -> Progress:
    """A bar with counts, elapsed and remaining time, on stderr."""
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
    )


class Counter:
    """Counts what is done; called with the number done since the last call."""

    def __init__(self, bar: Progress, task: TaskID) -> None:
        self._bar, self._task = bar, task

    def __call__(self, done: int) -> None:
        """So many more are done."""
        self._bar.advance(self._task, done)

    def expect(self, total: int | None) -> None:
        """About so many there will be."""
        self._bar.update(self._task, total=total)


@contextmanager
def counting(what: str) -> Iterator[Counter]:
    """A bar for one thing whose size may become known later."""
    with progress_bar() as bar:
        yield Counter(bar, bar.add_task(what, total=None))
