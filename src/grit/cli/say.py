"""Sentences for the user; loads nothing that trains."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from grit.errors import Interrupted


def say_to(quiet: bool) -> Callable[[str], None]:
    """Where sentences go: the terminal, unless machines read."""
    is_first = os.environ.get("RANK", "0") == "0"
    return (lambda text: None) if quiet or not is_first else (lambda text: say_plainly(text))


def say_plainly(text: str) -> None:
    """Print a sentence as it is, without colours."""
    Console().print(text, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def saying_how_to_go_on() -> Iterator[None]:
    """Add to the message of a run that was stopped what the user does next."""
    try:
        yield
    except Interrupted as error:
        raise Interrupted(f"{error}\nGo on with the same command and --resume.") from None


def prediction_command(run: Path, molecules: str | None, store: str | Path | None) -> str:
    """How to predict with a run: molecules from a table, other graphs from a store."""
    return f"grit predict {run} {'INPUT.csv' if molecules else store or 'STORE'} -o OUT.csv"
