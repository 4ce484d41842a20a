"""Options of the commands that learn from a table of molecules."""

from pathlib import Path
from typing import Annotated

import typer

from grit.cli.options import plugin_override

Data = Annotated[Path, typer.Argument(help="A table: CSV, Excel, Parquet, JSON lines, SDF, .smi; gzipped or not.")]
Target = Annotated[list[str], typer.Option(help="Column to predict; several times for several.")]
Overrides = Annotated[list[str] | None, typer.Argument(help="key=value, e.g. train.epochs=50")]
Smiles = Annotated[str | None, typer.Option(help="Column of SMILES [default: found by its name]")]
TaskName = Annotated[
    str | None, typer.Option(help="regression, binary, multiclass, multilabel, mixed [default: inferred]")
]
Split = Annotated[str, typer.Option(help="scaffold, random, column:NAME or file:PATH")]
Standardise = Annotated[
    str, typer.Option(help="none, or parent: each molecule is the neutral form of its largest part.")
]
Duplicates = Annotated[
    str, typer.Option(help="Rows with the same molecule: keep all, merge into one, drop all but the first, or error.")
]
IgnoreCase = Annotated[bool, typer.Option("--ignore-case", help="Classes that differ only in case or spaces are one.")]
Features = Annotated[
    list[str] | None, typer.Option(help="Column of numbers that the model reads, too; several times for several.")
]
Descriptors = Annotated[
    list[str] | None, typer.Option(help="rdkit or morgan: computed numbers that the model reads, too.")
]
Weights = Annotated[str | None, typer.Option(help="Column that says how much each row counts in training.")]
Balance = Annotated[bool, typer.Option("--balance", help="Rare classes count as much as common ones.")]
Preset = Annotated[str, typer.Option(help="fast, default, paper, or a recipe file, such as the one of grit tune")]
Epochs = Annotated[int | None, typer.Option(min=1, help="Passes over the training data [default: the preset's]")]
BatchSize = Annotated[int | None, typer.Option(min=1, help="Molecules per step [default: the preset's]")]
Patience = Annotated[
    int | None, typer.Option(min=1, help="End after so many epochs without a better validation result.")
]
Seed = Annotated[int, typer.Option(min=0, help="Of the split, weights and shuffling.")]


def changes_of(
    overrides: list[str] | None,
    balance: bool,
    epochs: int | None,
    batch_size: int | None,
    patience: int | None,
    plugins: list[str] | None,
) -> list[str]:
    """The changes to a preset that the options of a command ask for."""
    from grit.recipe.presets import with_named_options

    named = {"train.epochs": epochs, "train.batch_size": batch_size, "train.patience": patience}
    asked = [*(overrides or []), *(["train.balance=true"] if balance else []), *plugin_override(plugins)]
    return with_named_options(asked, named)
