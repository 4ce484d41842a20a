"""``grit plot rrwp SMILES|FILE -o OUT`` and ``grit plot attention RUN SMILES -o OUT``."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Draw walk probabilities, or what a trained run attends to.", no_args_is_help=True)

Out = Annotated[Path, typer.Option("--out", "-o", help="The picture to write: .png, .svg or .pdf")]


@app.command("rrwp")
def rrwp(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SMILES|FILE",
            help="A molecule, or a graph: an edge list (.csv .tsv .txt .edgelist), .graphml or .gml",
        ),
    ],
    out: Out,
    steps: Annotated[
        str, typer.Option("--steps", "--walk-steps", help="4 for walks of 1 to 4 steps; 1,2,8 for those.")
    ] = "4",
    matrices: Annotated[bool, typer.Option("--matrices", help="Also show the probabilities as heat maps.")] = False,
) -> None:
    """Draw a molecule or a graph with its relative random walk probabilities."""
    from grit.cli.print_plot import plot_rrwp

    plot_rrwp(source, out, steps, matrices=matrices)


@app.command("attention")
def attention(
    run: Annotated[Path, typer.Argument(help="The folder of a run that was trained on molecules.")],
    smiles: Annotated[str, typer.Argument(metavar="SMILES", help="The molecule.")],
    out: Out,
    layer: Annotated[int | None, typer.Option(help="Counted from 0 [default: the last]")] = None,
    head: Annotated[int | None, typer.Option(help="Counted from 0 [default: the mean of all]")] = None,
    atom: Annotated[
        int | None, typer.Option(help="The query atom, counted from 0 [default: the one most attended to]")
    ] = None,
) -> None:
    """Draw a molecule with the attention weights of a trained run."""
    from grit.cli.print_plot import plot_attention

    plot_attention(run, smiles, out, layer, head, atom)
