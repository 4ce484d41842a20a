"""Options that several commands share."""

import json
from pathlib import Path
from typing import Annotated

import typer


def _load_plugins(names: list[str] | None) -> list[str] | None:
    if not names:
        return None
    from grit.recipe.plugins import load_plugin

    names = [str(Path(name).resolve()) if name.endswith(".py") else name for name in names]
    for name in names:
        load_plugin(name)
    return names


def plugin_override(names: list[str] | None) -> list[str]:
    """The override that writes the names of plugins into a recipe."""
    return [f"plugins={json.dumps(names)}"] if names else []


Plugins = Annotated[
    list[str] | None,
    typer.Option(
        "--plugin",
        callback=_load_plugins,
        help="A module or a file of your own that adds encodings, models ...; may be repeated.",
    ),
]
Root = Annotated[
    Path | None, typer.Option(help="Folder of downloads and stores [default: $GRIT_DATA, or the user's cache folder]")
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda ...")]
Workers = Annotated[int, typer.Option(min=0, help="Processes that prepare batches.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON, and nothing else.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with an interrupted run.")]
Separator = Annotated[
    str | None, typer.Option(help="Between cells of a text table: a character, or tab [default: recognised]")
]
Encoding = Annotated[str | None, typer.Option(help="Of a text table: utf-8, cp1252 ... [default: recognised]")]
Sheet = Annotated[str | None, typer.Option(help="Of an Excel workbook: name or number [default: the first]")]
Decimal = Annotated[str | None, typer.Option(help="Of numbers in a text table: comma or point [default: recognised]")]
Compile = Annotated[bool, typer.Option("--compile", help="Use torch.compile.")]
Log = Annotated[
    list[str] | None,
    typer.Option("--log", help="Also log to csv, tensorboard or wandb; may be repeated (see grit.LOGGERS)."),
]
