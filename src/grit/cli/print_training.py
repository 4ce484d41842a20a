"""What the commands around training print."""

import os
from math import isnan
from pathlib import Path
from typing import Any, cast

from rich.console import Console
from rich.table import Table

from grit.cli.json_text import json_text
from grit.cli.say import prediction_command, say_plainly, say_to, saying_how_to_go_on
from grit.cli.training_progress import watching
from grit.datasets import load
from grit.errors import GritError
from grit.graphs.store import GraphStore
from grit.recipe.config import Recipe
from grit.training.fit import Comparison
from grit.training.initial_weights import InitPart
from grit.training.run_list import model_name
from grit.training.seeds import seeds_beside_paper
from grit.training.train import RunOptions, train


def parse_seeds(text: str) -> list[int]:
    """``0,1,2`` -> [0, 1, 2]."""
    try:
        seeds = [int(part) for part in text.split(",")]
    except ValueError:
        raise GritError(f"--seeds takes whole numbers with commas between, such as 0,1,2,3; got {text!r}.") from None
    if len(set(seeds)) < len(seeds):
        raise GritError(f"--seeds names a seed twice, which would count one run as two; got {text!r}.")
    return seeds


def train_and_show(
    recipe: Recipe,
    folder: Path,
    *,
    resume: bool,
    options: RunOptions,
    quiet: bool,
    init: Path | None = None,
    init_part: str = "all",
    store: GraphStore | None = None,
    last_words: bool = True,
) -> dict[str, Any]:
    """Train with a progress bar and print the result; Ctrl-C says how to go on."""
    say = say_to(quiet)
    store = load(recipe.dataset, options.root) if store is None else store
    say(
        f"training {model_name(recipe)} on {store.name}: {store.split_size('train'):,} "
        f"{'nodes' if store.divides_nodes else 'graphs'} to learn from, {store.split_size('val'):,} to choose by; "
        f"run folder {folder}"
    )
    is_quiet = quiet or os.environ.get("RANK", "0") != "0"
    with saying_how_to_go_on(), watching(recipe.task(store.task).metric, quiet=is_quiet) as watch:
        result = train(
            recipe,
            folder,
            store=store,
            resume=resume,
            init=init,
            init_part=cast("InitPart", init_part),
            options=options,
            watch=watch,
            say=say,
        )
    metric = result["metric"]
    for split in ("val", "test"):
        if split in result:
            others = ", ".join(f"{name} {value:.4f}" for name, value in result[split].items() if name != metric)
            say(f"{split}: {metric} {result[split][metric]:.4f}" + (f" ({others})" if others else ""))
    paper = recipe.paper
    if paper is not None and paper.printed is not None:
        say(f"the paper's figure, for the full recipe: {paper.metric} {paper.printed}")
    best = "none" if result["best_epoch"] is None else result["best_epoch"] + 1  # counted from 1, as while training
    say(f"best epoch {best}, {result['num_parameters']:,} parameters, {result['seconds']:.0f} s")
    if last_words:
        say(f"Next: grit evaluate {folder}, or {prediction_command(folder, store.manifest.molecules, store.path)}")
    return result


def print_several(recipe: Recipe, results: list[dict[str, Any]], as_json: bool) -> None:
    """Mean and deviation of several seeds beside the paper's figure."""
    found = seeds_beside_paper(recipe, results)
    if as_json:
        print(json_text(found))
        return
    say_plainly(f"{found['runs']} seeds: {found['metric']} {found['mean']:.4f} ± {found['sd']:.4f}")
    if "paper" in found:
        paper = found["paper"]
        say_plainly(
            f"the paper: {paper['mean']} ± {paper['sd']} ({paper['runs']} seeds); one-tailed t-test that these runs are better: "
            f"p = {found['p_better_than_paper']:.3g}"
        )


def print_comparison(metric: str, found: Comparison, name: str = "GRIT") -> None:
    """The model beside simple predictors."""
    table = Table(box=None)
    table.add_column("on the test split")
    rows: list[tuple[str, dict[str, float] | None]] = [
        (name, found.model),
        ("fingerprints + random forest", found.forest),
        ("always the mean / class shares", found.constant),
    ]
    metrics = list(found.constant)
    for each in [metric, *[other for other in metrics if other != metric]]:
        table.add_column(each, justify="right")
    for label, values in rows:
        if values:
            table.add_row(label, *[f"{values[each]:.4f}" for each in [metric, *[o for o in metrics if o != metric]]])
    Console().print(table)
    for row in (found.tested or {}).values():
        ahead, own = row["model_minus_this"], row["average"].get(metric)
        if own is not None and not isnan(ahead["p"]):
            say_plainly(
                f"{row['title']}: {metric} {own['value']:.4f} ({own['low']:.4f} to {own['high']:.4f}); {name} minus this "
                f"{ahead['value']:+.4f} ({ahead['low']:+.4f} to {ahead['high']:+.4f}), p = {ahead['p']:.2g} (paired bootstrap)"
            )
