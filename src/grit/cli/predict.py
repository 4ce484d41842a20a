"""``grit predict RUN INPUT -o OUT``."""

from pathlib import Path
from typing import Annotated

import typer

from grit.cli.options import Decimal, Encoding, Plugins, Resume, Root, Separator, Sheet


def predict(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    source: Annotated[Path, typer.Argument(metavar="INPUT", help="A table with SMILES, a store, or a data set.")],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            help="The table to write, in the format of its ending: .csv, .xlsx, .parquet, .jsonl, .sdf ...",
        ),
    ],
    smiles: Annotated[str | None, typer.Option(help="Column of SMILES [default: found by its name]")] = None,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="No longer needed: they are always written.")
    ] = False,
    confidence: Annotated[
        float | None, typer.Option(help="Of intervals and sets, such as 0.8 [default: that of the fit]")
    ] = None,
    resume: Resume = False,
    separator: Separator = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    decimal: Decimal = None,
    processes: Annotated[int, typer.Option(min=0, help="0: one per processor.")] = 0,
    device: Annotated[str, typer.Option(help="cpu, cuda ...")] = "cpu",
    root: Root = None,
    plugin: Plugins = None,
) -> None:
    """Predict every row of a table, in order; rows that cannot be read get a reason instead.

    Tables are CSV, TSV, Excel, Parquet, JSON lines, SDF or .smi, gzipped or not, told by their endings. After Ctrl-C the same
    command with --resume goes on.

    Classes come with their probabilities.

    For a store the column row is the number of each graph's row in its source, from 0; for nodes or edges there is a line for
    each of them.
    """
    from grit.cli.progress_bar import counting
    from grit.cli.say import say_to, saying_how_to_go_on
    from grit.datasets import DATASETS
    from grit.datasets import load as load_data
    from grit.datasets.tables.table import ReadOptions
    from grit.training.predict_table import predict_stored, predict_table
    from grit.training.predictor import load

    if probabilities:
        typer.echo("--probabilities is no longer needed: class probabilities are always written.", err=True)
    predictor = load(run, device)
    with saying_how_to_go_on(), counting("predicting") as progress:
        if source.is_dir() or str(source) in DATASETS:
            store = load_data(str(source), root)
            rows = predict_stored(predictor, store, out, progress=progress)
            without = 0
        else:
            rows, without = predict_table(
                predictor,
                source,
                out,
                smiles=smiles,
                confidence=confidence,
                options=ReadOptions(separator, encoding, sheet, decimal),
                resume=resume,
                processes=processes or None,
                progress=progress,
                expect=progress.expect,
                say=say_to(quiet=False),
            )
    print(f"{out}: {rows:,} rows, {without:,} without a prediction" + (" (see note)" if without else ""))
