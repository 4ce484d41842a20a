"""``grit runs [FOLDER ...]``."""

from pathlib import Path
from typing import Annotated

import typer

from grit.cli.json_text import json_text
from grit.cli.options import Json, Plugins


def runs(
    folders: Annotated[list[Path] | None, typer.Argument(help="Where to look [default: runs]")] = None,
    sort: Annotated[
        str, typer.Option(help="name; metric: the best on validation first; time: the newest first")
    ] = "name",
    plugin: Plugins = None,
    as_json: Json = False,
) -> None:
    """List the runs below some folders: what they trained, how far they are, and how good."""
    from grit.cli.print_runs import print_runs
    from grit.training.run_list import list_runs

    found = list_runs(folders or [Path("runs")], sort)
    if as_json:
        print(json_text([run.as_dict() for run in found]))
    else:
        print_runs(found)
