"""``grit fit DATA.csv --target COLUMN``."""

from pathlib import Path
from typing import Annotated

import typer

from grit.cli.json_text import json_text
from grit.cli.options import Compile, Device, Json, Plugins, Resume, Workers, plugin_override


def fit(
    data: Annotated[Path, typer.Argument(help="CSV or TSV of molecules, possibly gzipped.")],
    target: Annotated[list[str], typer.Option(help="Column to predict; several times for several.")],
    overrides: Annotated[list[str] | None, typer.Argument(help="key=value, e.g. train.epochs=50")] = None,
    smiles: Annotated[str | None, typer.Option(help="Column of SMILES [default: found by its name]")] = None,
    task: Annotated[
        str | None, typer.Option(help="regression, binary, multiclass, multilabel [default: inferred]")
    ] = None,
    split: Annotated[str, typer.Option(help="scaffold, random, column:NAME or file:PATH")] = "scaffold",
    preset: Annotated[str, typer.Option(help="fast, default or paper")] = "default",
    run: Annotated[Path | None, typer.Option(help="Run folder [default: runs/DATA]")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the split, weights and shuffling.")] = 0,
    resume: Resume = False,
    forest: Annotated[bool, typer.Option(help="Also train a random forest on fingerprints, to compare.")] = True,
    device: Device = "auto",
    workers: Workers = 0,
    compile_model: Compile = False,
    plugin: Plugins = None,
    as_json: Json = False,
) -> None:
    """Train a predictor on your own table of SMILES, and compare it with simple ones."""
    from grit.cli.fit_text import fit_and_show
    from grit.training.train import RunOptions

    found = fit_and_show(
        data,
        run or Path("runs") / data.name.split(".")[0],
        targets=target,
        smiles=smiles,
        task=task,
        split=split,
        preset=preset,
        seed=seed,
        overrides=[*(overrides or []), *plugin_override(plugin)],
        resume=resume,
        forest=forest,
        options=RunOptions(device, num_workers=workers, compile_model=compile_model),
        quiet=as_json,
    )
    if as_json:
        print(json_text(found))
