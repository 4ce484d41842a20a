"""``grit sweep FILE``."""

from pathlib import Path
from typing import Annotated

import typer

from grit.cli.options import Compile, Device, Json, Log, Root, Workers


def sweep(
    file: Annotated[Path, typer.Argument(help="YAML: recipe, overrides, grid (key: list of values), seeds, plugins.")],
    run: Annotated[Path | None, typer.Option(help="Folder of the runs [default: runs/FILE]")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check everything and list the runs, without training.")
    ] = False,
    device: Device = "auto",
    workers: Workers = 0,
    compile_model: Compile = False,
    root: Root = None,
    log: Log = None,
    as_json: Json = False,
) -> None:
    """Train all combinations of a grid of settings; the same command goes on with what is left."""
    from grit.cli.print_sweep import list_sweep, sweep_and_show
    from grit.training.sweep import check_sweep
    from grit.training.sweep_file import read_sweep
    from grit.training.train import RunOptions

    runs = read_sweep(file)
    folder = run or Path("runs") / file.stem
    options = RunOptions(device, num_workers=workers, compile_model=compile_model, root=root, log=tuple(log or ()))
    stores = check_sweep(runs, folder, options)
    if dry_run:
        list_sweep(runs, folder, as_json)
    else:
        sweep_and_show(runs, folder, stores, options, as_json)
