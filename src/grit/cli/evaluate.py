"""``grit evaluate RUN``."""

from pathlib import Path
from typing import Annotated

import typer

from grit.cli.json_text import json_text
from grit.cli.options import Json, Plugins, Root


def evaluate(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    split: Annotated[str, typer.Option(help="train, val or test")] = "test",
    data: Annotated[str | None, typer.Option(help="Another data set or store [default: the run's own]")] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda ...")] = "cpu",
    root: Root = None,
    plugin: Plugins = None,
    as_json: Json = False,
) -> None:
    """Measure a trained run on a split of its data."""
    from grit.cli.print_training import prediction_command
    from grit.datasets import load as load_data
    from grit.training.predictor import load

    predictor = load(run, device)
    metrics = predictor.evaluate(load_data(data or predictor.data.store or predictor.data.name, root), split)
    if as_json:
        print(json_text(metrics))
        return
    for name, value in metrics.items():
        print(f"{split} {name}: {value:.4f}")
    print(f"Next: {prediction_command(run, predictor.data.molecules, predictor.data.store)}")
