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

    from rich.console import Console

    from grit.cli.print_training import print_comparison
    from grit.cli.say import say_to
    from grit.cli.training_progress import watching
    from grit.training.demo import MOLECULES, run_demo

    say = say_to(False)
    free = (path for number in count(1) if not (path := Path("runs") / f"demo-{number}").exists())
    folder = run or next(free)
    say("zinc-mini: 2,500 molecules of ZINC; the target is constrained solubility, the paper's main benchmark in small")
    found = run_demo(folder, seed, overrides or [], watching, Console().status)
    print_comparison("mae", found.comparison)
    for name, value in found.predictions.items():
        say(f"{name:12s} {MOLECULES[name]:45s} predicted {value:+.2f}")
    say(f"the run is in {folder}; training took {found.seconds:.0f} s")
    say("Next: grit fit YOUR.csv --target COLUMN trains on your own molecules; grit recipes lists the published models")
