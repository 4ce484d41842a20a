"""Progress bars: shown on a terminal, silent when piped."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn


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


@contextmanager
def counting(what: str) -> Iterator[Callable[[int], None]]:
    """A bar for one thing of unknown size; call what it gives with the number done since the last call."""
    with progress_bar() as bar:
        task = bar.add_task(what, total=None)
        yield lambda done: bar.advance(task, done)
