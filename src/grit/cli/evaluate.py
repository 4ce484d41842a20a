"""``grit evaluate RUN [FILE]``."""

from pathlib import Path
from typing import Annotated

import typer

from grit.cli.json_text import json_text
from grit.cli.options import Json, Plugins, Root


def evaluate(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    file: Annotated[
        Path | None, typer.Argument(help="A labelled table of molecules [default: the run's own test split]")
    ] = None,
    split: Annotated[str | None, typer.Option(help="train, val or test, without FILE [default: test]")] = None,
    data: Annotated[str | None, typer.Option(help="Another data set or store [default: the run's own]")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="CSV for the predictions [default: beside the run]")
    ] = None,
    smiles: Annotated[str | None, typer.Option(help="Column of SMILES in FILE [default: found by its name]")] = None,
    processes: Annotated[int, typer.Option(min=0, help="0: one per processor.")] = 0,
    device: Annotated[str, typer.Option(help="cpu, cuda ...")] = "cpu",
    root: Root = None,
    plugin: Plugins = None,
    as_json: Json = False,
) -> None:
    """Measure a trained run on a split of its data, or on a labelled table, with bootstrap intervals."""
    from grit.cli.print_evaluation import print_measurement
    from grit.cli.progress_bar import counting
    from grit.cli.say import prediction_command, say_to
    from grit.datasets import load as load_data
    from grit.errors import GritError
    from grit.training.evaluate_run import default_place, evaluate_split, evaluate_table, unfinished, write_evaluated
    from grit.training.predictor import load

    if file is not None and (split is not None or data is not None):
        raise GritError("FILE is a table, which is measured whole: leave out --split and --data, or name no FILE.")
    if file is None and smiles is not None:
        raise GritError("--smiles names a column of FILE, and no FILE is given.")
    predictor, say = load(run, device), say_to(as_json)
    warning = unfinished(run)
    if warning is not None:
        say(warning)
    if file is not None:
        what, part = file.name, file.name.split(".")[0]
        with counting("predicting") as progress:
            found = evaluate_table(predictor, file, smiles=smiles, processes=processes or None, progress=progress)
    else:
        part = split or "test"
        what = f"{part} split"
        found = evaluate_split(predictor, load_data(data or predictor.data.store or predictor.data.name, root), part)
    for note in found.notes:
        say(note)
    measured = found.measured()
    place = None
    if found.rows.size:
        place = out or default_place(run, part)
        if file is not None and place.exists() and place.samefile(file):
            raise GritError(f"{str(place)!r} is the table to measure; name another CSV with -o.")
        write_evaluated(place, found)
    elif out is not None:
        raise GritError("predictions for nodes or edges are written by grit predict; leave out -o.")
    if as_json:
        metrics = {name: each.value for name, each in measured.average.items()}
        content = {"data": what, "rows": len(found.outputs), "unused": len(found.unused), "unfinished": warning}
        saved = None if place is None else str(place)
        print(json_text({"metrics": metrics, **measured.as_json(), **content, "predictions": saved}))
        return
    unused = f", {len(found.unused):,} rows could not be measured (see the column note)" if found.unused else ""
    say(f"{what}: {len(found.outputs):,} predictions{unused}")
    print_measurement(measured, found.task.metric)
    if place is not None:
        say(f"Predictions beside the truth: {place}")
    say(f"Next: {prediction_command(run, predictor.data.molecules, predictor.data.store)}")
