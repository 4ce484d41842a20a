"""The command ``grit``: one file per command, no logic, heavy imports inside the commands."""

import sys
from importlib.metadata import entry_points
from typing import Annotated

import typer

from grit.cli import (
    compare,
    datasets,
    demo,
    doctor,
    evaluate,
    export,
    fit,
    plot,
    predict,
    recipes,
    reproduce,
    runs,
    sweep,
    train,
    tune,
)
from grit.cli.failures import exit_code_of
from grit.version import VERSION

app = typer.Typer(
    name="grit",
    help="GRIT, the Graph Inductive bias Transformer.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"grit {VERSION}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


app.command("train")(train.train)
app.command("sweep")(sweep.sweep)
app.command("runs")(runs.runs)
app.command("compare")(compare.compare)
app.command("fit")(fit.fit)
app.command("tune")(tune.tune)
app.command("evaluate")(evaluate.evaluate)
app.command("predict")(predict.predict)
app.command("export")(export.export)
app.add_typer(plot.app, name="plot")
app.command("datasets")(datasets.datasets)
app.command("recipes")(recipes.recipes)
app.command("reproduce")(reproduce.reproduce)
app.command("doctor")(doctor.doctor)
app.command("demo")(demo.demo)


def main() -> None:
    """Run the command line; `grit.cli.failures` says how it ends."""
    sys.exit(exit_code_of(_run))


def _run() -> None:
    if not {"--help", "--version"} & set(sys.argv) and entry_points(group="grit.plugins"):
        from grit.recipe.plugins import load_installed_plugins

        load_installed_plugins()
    app()
