"""``grit train RECIPE [key=value ...]``."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from grit.cli.json_text import json_text
from grit.cli.options import Compile, Device, Json, Log, Plugins, Resume, Root, Workers, plugin_override


def train(
    recipe: Annotated[
        str,
        typer.Argument(help="A recipe (grit recipes lists them), a YAML file of your own, or a run folder to resume."),
    ],
    overrides: Annotated[list[str] | None, typer.Argument(help="key=value, e.g. model.num_layers=4")] = None,
    run: Annotated[Path | None, typer.Option(help="Run folder [default: runs/RECIPE-seedN]")] = None,
    seeds: Annotated[
        str | None, typer.Option(help="Several seeds, e.g. 0,1,2,3; finished ones are not run again.")
    ] = None,
    init: Annotated[
        Path | None, typer.Option(help="Begin with the weights of a run folder or a checkpoint file, where they fit.")
    ] = None,
    init_part: Annotated[str, typer.Option(help="all, or encoder: everything but the head")] = "all",
    resume: Resume = False,
    device: Device = "auto",
    workers: Workers = 0,
    compile_model: Compile = False,
    save_every: Annotated[float, typer.Option(min=0, help="Seconds between checkpoints within an epoch.")] = 60.0,
    root: Root = None,
    log: Log = None,
    plugin: Plugins = None,
    as_json: Json = False,
) -> None:
    """Train a recipe, and test it at the epoch that is best on validation."""
    from grit.cli.print_training import parse_seeds, print_several, train_and_show
    from grit.cli.say import say_to
    from grit.errors import GritError
    from grit.recipe.load import load_recipe, load_saved_recipe, scale_warmup
    from grit.recipe.load import recipes as names
    from grit.training.train import RunOptions

    changes = [*(overrides or []), *plugin_override(plugin)]
    read = partial(load_recipe, recipe)
    if resume and run is None and recipe not in names() and (Path(recipe) / "config.yaml").is_file():
        run, read = Path(recipe), partial(load_saved_recipe, Path(recipe) / "config.yaml")
    elif recipe not in names() and (Path(recipe) / "config.yaml").is_file():
        raise GritError(f"{recipe!r} is a run folder: add --resume to go on with it.")
    chosen = scale_warmup(read(*changes), read(), changes, say_to(as_json))
    options = RunOptions(device, save_every, workers, compile_model, root, tuple(log or ()))
    show = partial(train_and_show, init=init, init_part=init_part, options=options, quiet=as_json)
    name = Path(recipe).stem
    if seeds is None:
        folder = run or Path("runs") / f"{name}-seed{chosen.train.seed}"
        result = show(chosen, folder, resume=resume)
        if as_json:
            print(json_text(result))
        return
    results = []
    for seed in parse_seeds(seeds):
        seeded = scale_warmup(read(*changes, f"train.seed={seed}"), read(), changes, None)
        folder = (run or Path("runs") / name) / f"seed{seed}"
        results.append(show(seeded, folder, resume=True))
    print_several(chosen, results, as_json)
