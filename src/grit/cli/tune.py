"""``grit tune DATA.csv --target COLUMN``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from grit.cli.options import Compile, Decimal, Device, Encoding, Json, Plugins, Resume, Separator, Sheet, Workers
from grit.cli.table_options import (
    Balance,
    BatchSize,
    Data,
    Descriptors,
    Duplicates,
    Epochs,
    Features,
    IgnoreCase,
    Overrides,
    Patience,
    Preset,
    Seed,
    Smiles,
    Split,
    Standardise,
    Target,
    TaskName,
    Weights,
    changes_of,
)

if TYPE_CHECKING:
    from grit.datasets.own.task_inference import TaskKind


def tune(
    data: Data,
    target: Target,
    overrides: Overrides = None,
    trials: Annotated[
        int, typer.Option(min=1, help="Sets of values to try, those of an interrupted run included.")
    ] = 20,
    seconds: Annotated[float | None, typer.Option(min=0, help="End when trials have taken so long.")] = None,
    space: Annotated[
        Path | None, typer.Option(help="YAML: which keys of the recipe to tune, and between which values.")
    ] = None,
    smiles: Smiles = None,
    task: TaskName = None,
    split: Split = "scaffold",
    standardise: Standardise = "none",
    duplicates: Duplicates = "keep",
    ignore_case: IgnoreCase = False,
    features: Features = None,
    descriptors: Descriptors = None,
    weights: Weights = None,
    balance: Balance = False,
    separator: Separator = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    decimal: Decimal = None,
    preset: Preset = "default",
    epochs: Epochs = None,
    batch_size: BatchSize = None,
    patience: Patience = None,
    run: Annotated[Path | None, typer.Option(help="Folder of the trials [default: runs/DATA-tune]")] = None,
    seed: Seed = 0,
    resume: Resume = False,
    device: Device = "auto",
    workers: Workers = 0,
    compile_model: Compile = False,
    plugin: Plugins = None,
    as_json: Json = False,
) -> None:
    """Look for the settings that suit a table of SMILES best; the result is a recipe for grit fit."""
    from functools import partial

    from grit.cli.print_tune import fit_command, print_tuned
    from grit.cli.progress_bar import counting
    from grit.cli.say import say_to, saying_how_to_go_on
    from grit.cli.training_progress import watching
    from grit.datasets.own.molecule_tables import MoleculeTable
    from grit.datasets.tables.table import ReadOptions
    from grit.training.train import RunOptions
    from grit.training.tune import tune as tune_table
    from grit.training.tune_space import read_space

    folder = run or Path("runs") / f"{data.name.split('.')[0]}-tune"
    with saying_how_to_go_on():
        found = tune_table(
            MoleculeTable(
                data,
                targets=target,
                smiles=smiles,
                task=cast("TaskKind | None", task),
                split=split,
                seed=seed,
                standardise=standardise,
                duplicates=duplicates,
                ignore_case=ignore_case,
                features=features or (),
                descriptors=descriptors or (),
                weights=weights,
                options=ReadOptions(separator, encoding, sheet, decimal),
            ),
            folder,
            trials=trials,
            seconds=seconds,
            preset=preset,
            overrides=changes_of(overrides, balance, epochs, batch_size, patience, plugin),
            space=None if space is None else read_space(space),
            resume=resume,
            options=RunOptions(device, num_workers=workers, compile_model=compile_model),
            reading=counting("reading molecules"),
            watching=partial(watching, quiet=as_json, many="trial"),
            say=say_to(as_json),
        )
    same = {
        "target": target,
        "smiles": smiles,
        "task": task,
        "split": None if split == "scaffold" else split,
        "standardise": None if standardise == "none" else standardise,
        "duplicates": None if duplicates == "keep" else duplicates,
        "features": features,
        "descriptors": descriptors,
        "weights": weights,
        "separator": separator,
        "encoding": encoding,
        "sheet": sheet,
        "preset": str(found.recipe),
        "seed": str(seed) if seed else None,
    }
    print_tuned(found, fit_command(data, same), as_json)
