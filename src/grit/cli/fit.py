"""``grit fit DATA.csv --target COLUMN``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from grit.cli.json_text import json_text
from grit.cli.options import (
    Compile,
    Device,
    Encoding,
    Json,
    Log,
    Plugins,
    Resume,
    Separator,
    Sheet,
    Workers,
    plugin_override,
)

if TYPE_CHECKING:
    from grit.datasets.own.task_inference import TaskKind


def fit(
    data: Annotated[Path, typer.Argument(help="A table: CSV, Excel, Parquet, JSON lines, SDF, .smi; gzipped or not.")],
    target: Annotated[list[str], typer.Option(help="Column to predict; several times for several.")],
    overrides: Annotated[list[str] | None, typer.Argument(help="key=value, e.g. train.epochs=50")] = None,
    smiles: Annotated[str | None, typer.Option(help="Column of SMILES [default: found by its name]")] = None,
    task: Annotated[
        str | None, typer.Option(help="regression, binary, multiclass, multilabel, mixed [default: inferred]")
    ] = None,
    split: Annotated[str, typer.Option(help="scaffold, random, column:NAME or file:PATH")] = "scaffold",
    features: Annotated[
        list[str] | None, typer.Option(help="Column of numbers that the model reads, too; several times for several.")
    ] = None,
    descriptors: Annotated[
        list[str] | None, typer.Option(help="rdkit or morgan: computed numbers that the model reads, too.")
    ] = None,
    weights: Annotated[str | None, typer.Option(help="Column that says how much each row counts in training.")] = None,
    balance: Annotated[bool, typer.Option("--balance", help="Rare classes count as much as common ones.")] = False,
    separator: Separator = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    preset: Annotated[str, typer.Option(help="fast, default or paper")] = "default",
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Passes over the training data [default: the preset's]")
    ] = None,
    batch_size: Annotated[int | None, typer.Option(min=1, help="Molecules per step [default: the preset's]")] = None,
    patience: Annotated[
        int | None, typer.Option(min=1, help="End after so many epochs without a better validation result.")
    ] = None,
    ensemble: Annotated[int, typer.Option(min=1, help="Models with different seeds, used together.")] = 1,
    confidence: Annotated[float, typer.Option(help="Of intervals and sets of predictions.")] = 0.9,
    run: Annotated[Path | None, typer.Option(help="Run folder [default: runs/DATA]")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the split, weights and shuffling.")] = 0,
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
    from grit.recipe.presets import with_named_options
    from grit.training.fit import fit as fit_table
    from grit.training.fit_folder import FitPlan
    from grit.training.train import RunOptions

    named = {"train.epochs": epochs, "train.batch_size": batch_size, "train.patience": patience}
    asked = [*(overrides or []), *(["train.balance=true"] if balance else []), *plugin_override(plugin)]
    changes = with_named_options(asked, named)
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
                features=features or (),
                descriptors=descriptors or (),
                weights=weights,
                options=ReadOptions(separator, encoding, sheet),
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
