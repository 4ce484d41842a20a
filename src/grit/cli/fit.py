"""``grit fit DATA.csv --target COLUMN``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from grit.cli.json_text import json_text
from grit.cli.options import Compile, Decimal, Device, Encoding, Json, Log, Plugins, Resume, Separator, Sheet, Workers
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


def fit(
    data: Data,
    target: Target,
    overrides: Overrides = None,
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
    ensemble: Annotated[int, typer.Option(min=1, help="Models with different seeds, used together.")] = 1,
    confidence: Annotated[float, typer.Option(help="Of intervals and sets of predictions.")] = 0.9,
    run: Annotated[Path | None, typer.Option(help="Run folder [default: runs/DATA]")] = None,
    seed: Seed = 0,
    resume: Resume = False,
    forest: Annotated[bool, typer.Option(help="Also train a random forest on fingerprints, to compare.")] = True,
    device: Device = "auto",
    workers: Workers = 0,
    compile_model: Compile = False,
    log: Log = None,
    plugin: Plugins = None,
    as_json: Json = False,
) -> None:
    """Train a predictor on your own table of SMILES, and compare it with simple ones."""
    from functools import partial

    from grit.cli.print_training import print_comparison
    from grit.cli.progress_bar import counting
    from grit.cli.say import say_to, saying_how_to_go_on
    from grit.cli.training_progress import watching
    from grit.datasets.own.molecule_tables import MoleculeTable
    from grit.datasets.tables.table import ReadOptions
    from grit.training.fit import fit as fit_table
    from grit.training.fit_folder import FitPlan
    from grit.training.train import RunOptions

    changes = changes_of(overrides, balance, epochs, batch_size, patience, plugin)
    say, folder = say_to(as_json), run or Path("runs") / data.name.split(".")[0]
    with saying_how_to_go_on():
        result, found, skipped = fit_table(
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
            preset=preset,
            overrides=changes,
            plan=FitPlan(ensemble=ensemble, confidence=confidence),
            resume=resume,
            with_forest=forest,
            options=RunOptions(device, num_workers=workers, compile_model=compile_model, log=tuple(log or ())),
            reading=counting("reading molecules"),
            watching=partial(watching, quiet=as_json),
            say=say,
        )
    if as_json:
        print(json_text({**result, "constant": found.constant, "forest": found.forest, "skipped": skipped}))
        return
    print_comparison(result["metric"], found)
    say(f"Next: grit predict {folder} INPUT.csv -o OUT.csv")
