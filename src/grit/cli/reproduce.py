"""``grit reproduce [NAME]``."""

from pathlib import Path
from typing import Annotated

import typer

from grit.cli.options import Root


def reproduce(
    name: Annotated[str | None, typer.Argument(help="A study; without one they are listed.")] = None,
    settings: Annotated[list[str] | None, typer.Argument(help="key=value, as the study's own text says")] = None,
    budget: Annotated[str, typer.Option(help="smoke (it runs), small (a laptop), or paper (as published).")] = "small",
    run: Annotated[Path | None, typer.Option(help="Folder of the results [default: runs/NAME-BUDGET]")] = None,
    root: Root = None,
) -> None:
    """Run an experiment of the paper, its table beside the paper's. Stopped with Ctrl-C, the same command goes on."""
    from grit.cli.print_reproduce import list_studies, run_study

    if name is None:
        list_studies()
    else:
        run_study(name, settings or [], budget, run, root)
