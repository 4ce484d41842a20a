"""What ``grit fit`` and ``grit demo`` print."""

from pathlib import Path
from typing import Any, cast

from rich.console import Console

from grit.cli.progress_bar import progress_bar
from grit.cli.training_progress import watching
from grit.cli.training_text import print_comparison, say_to
from grit.datasets import load
from grit.datasets.benchmarks.zinc_mini import bundled_smiles
from grit.datasets.own.molecule_tables import smiles_column
from grit.datasets.own.task_inference import TaskKind
from grit.datasets.pipeline.text_table import TextTable
from grit.errors import GritError
from grit.recipe.load import load_recipe
from grit.recipe.presets import check_preset
from grit.training.device import check_device
from grit.training.fit import compare, fit_folder, fit_table, prepare_table
from grit.training.loop import Interrupted
from grit.training.predictor import load as load_run
from grit.training.train import RunOptions, train

MOLECULES = {
    "aspirin": "CC(=O)Oc1ccccc1C(=O)O",
    "caffeine": "Cn1cnc2c1c(=O)n(C)c(=O)n2C",
    "fluorescein": "O=C1OC2(c3ccc(O)cc3Oc3cc(O)ccc32)c2ccccc21",
}


def fit_and_show(
    data: Path,
    run: Path,
    *,
    targets: list[str],
    smiles: str | None,
    task: str | None,
    split: str,
    preset: str,
    seed: int,
    overrides: list[str],
    resume: bool,
    forest: bool,
    options: RunOptions,
    quiet: bool,
) -> dict[str, Any]:
    """Read the table, train, compare, and say what to do next."""
    say = say_to(quiet)
    check_preset(preset)
    check_device(options.device)
    recipe = load_recipe(
        f"own-{preset}", f"train.seed={seed}", *overrides
    )  # an error in them before the work, not after it
    table = TextTable(data)
    TextTable(data, [*targets, smiles or smiles_column(table)])  # likewise
    with fit_folder(run, resume=resume):
        with progress_bar() as bar:
            task_bar = bar.add_task("reading molecules", total=None)
            store = prepare_table(
                data,
                run,
                targets=targets,
                smiles=smiles,
                task=cast("TaskKind | None", task),
                split=split,
                seed=seed,
                progress=lambda rows: bar.advance(task_bar, rows),
                say=say,
            )
        sizes = ", ".join(f"{members.size:,} {name}" for name, members in store.splits.items())
        say(f"{len(store):,} molecules ({sizes}; split: {split}; override with --split, --task, --smiles)")
        if store.manifest.skipped:
            say(f"{store.manifest.skipped:,} rows could not be used; {run / 'data' / 'skipped.csv'} says why")
        try:
            with watching(recipe.task(store.task).metric, quiet=quiet) as watch:
                result, found = fit_table(
                    data,
                    run,
                    store,
                    preset=preset,
                    seed=seed,
                    overrides=overrides,
                    resume=resume,
                    options=options,
                    watch=watch,
                    say=say,
                    with_forest=forest,
                )
        except Interrupted as error:
            raise GritError(f"{error}\nGo on with the same command and --resume.") from None
    if not quiet:
        print_comparison(result["metric"], found)
        say(f"Next: grit predict {run / 'model'} INPUT.csv -o OUT.csv")
    return {**result, "constant": found.constant, "forest": found.forest, "skipped": store.manifest.skipped}


def run_demo(run: Path, seed: int, overrides: list[str]) -> dict[str, float]:
    """Train on the bundled molecules, compare, and predict three that everyone knows."""
    say = say_to(False)
    console = Console()
    say("zinc-mini: 2,500 molecules of ZINC; the target is constrained solubility, the paper's main benchmark in small")
    with console.status("preparing the molecules"):
        store = load("zinc-mini")
    recipe = load_recipe("zinc-mini", f"train.seed={seed}", *overrides)
    with watching(store.task.metric) as watch:
        result = train(recipe, run, store=store, watch=watch, resume=False)
    with console.status("fingerprints and a random forest, to compare"):
        found = compare(store, result["test"], [bundled_smiles()[int(row)] for row in store.rows], seed)
    print_comparison("mae", found)
    predictor = load_run(run)
    for (name, smiles), value in zip(MOLECULES.items(), predictor.predict(list(MOLECULES.values())), strict=True):
        say(f"{name:12s} {smiles:45s} predicted {value[0]:+.2f}")
    say(f"the run is in {run}; training took {result['seconds']:.0f} s")
    say("Next: grit fit YOUR.csv --target COLUMN trains on your own molecules; grit recipes lists the published models")
    return {"model": found.model["mae"], "constant": found.constant["mae"], "forest": (found.forest or {})["mae"]}
