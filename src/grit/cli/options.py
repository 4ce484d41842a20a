"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

Root = Annotated[
    Path | None, typer.Option(help="Folder of downloads and stores [default: $GRIT_DATA, or the user's cache folder]")
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda ...")]
Workers = Annotated[int, typer.Option(min=0, help="Processes that prepare batches.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON, and nothing else.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with an interrupted run.")]
Compile = Annotated[bool, typer.Option("--compile", help="Use torch.compile.")]
