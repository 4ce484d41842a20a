"""``grit compare RUN RUN ...``."""

from pathlib import Path
from typing import Annotated

import typer

from grit.cli.options import Json, Plugins


def compare(
    runs: Annotated[
        list[Path], typer.Argument(help="Run folders, or folders that hold some, such as those of --seeds.")
    ],
    out: Annotated[Path | None, typer.Option("-o", help="Learning curves as a picture: .png, .svg or .pdf")] = None,
    plugin: Plugins = None,
    as_json: Json = False,
) -> None:
    """Runs side by side: settings that differ, figures, learning curves, and a test of the difference."""
    from grit.cli.picture_files import check_picture
    from grit.cli.print_compare import comparison_json, print_compared, save_curves
    from grit.training.comparison import read_runs

    if out is not None:
        check_picture(out)
    found = read_runs(runs)
    if out is not None:
        save_curves(found, out)
    if as_json:
        print(comparison_json(found))
    else:
        print_compared(found, out)
