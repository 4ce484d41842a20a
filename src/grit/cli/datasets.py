"""``grit datasets``, ``grit datasets NAME``, ``grit datasets build NAME``, ``grit datasets verify NAME``."""

from pathlib import Path
from typing import Annotated

import typer

from grit.cli.options import Plugins, Root


def datasets(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME | build NAME | verify NAME]",
            help="Nothing lists all data sets. NAME may be the path of a store, except to build.",
        ),
    ] = None,
    root: Root = None,
    source: Annotated[Path | None, typer.Option("--from", help="Folder with the files to build from.")] = None,
    how: Annotated[
        str | None, typer.Option(help="Which form of the data to build from, e.g. smiles or generate.")
    ] = None,
    processes: Annotated[int, typer.Option(min=0, help="0: one per processor.")] = 0,
    seed: Annotated[int | None, typer.Option(min=0, help="Of generated data and random splits.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most this many graphs of each split.")] = None,
    trust: Annotated[bool, typer.Option("--trust", help="Read pickles that have no published checksum.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a store that exists.")] = False,
    plugin: Plugins = None,
) -> None:
    """List data sets, show one beside its published statistics, build one, or verify that one is still what was built."""
    from grit.cli import print_datasets as text
    from grit.datasets import BuildOptions
    from grit.errors import GritError

    match words or []:
        case [] | ["list"]:
            text.print_list(root)
        case ["build" | "verify" as action]:
            raise GritError(f"which one? grit datasets {action} NAME; grit datasets lists them.")
        case ["build", name]:
            options = BuildOptions(processes=processes, seed=seed, limit=limit, trust=trust)
            text.build_with_progress(name, root=root, folder=source, how=how, options=options, overwrite=overwrite)
            text.print_one(name, root)
        case ["verify", name]:
            text.verify_with_progress(name, root)
        case [name]:
            text.print_one(name, root)
        case _:
            raise GritError(
                "say: grit datasets, grit datasets NAME, grit datasets build NAME, or grit datasets verify NAME."
            )
