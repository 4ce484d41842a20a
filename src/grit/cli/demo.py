"""``grit demo``."""

from pathlib import Path
from typing import Annotated

import typer


def demo(
    overrides: Annotated[list[str] | None, typer.Argument(help="key=value, e.g. train.epochs=4")] = None,
    run: Annotated[Path | None, typer.Option(help="Run folder [default: runs/demo-1, demo-2 ...]")] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**31, help="Of weights and shuffling.")] = 0,
) -> None:
    """Train a small GRIT on the bundled molecules in about a minute, compare it, and predict three molecules."""
    from itertools import count

    from grit.cli.fit_text import run_demo

    free = (path for number in count(1) if not (path := Path("runs") / f"demo-{number}").exists())
    run_demo(run or next(free), seed, overrides or [])
