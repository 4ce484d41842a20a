"""A small GRIT on the molecules that come with the package, compared with simple predictors."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from grit.datasets import load
from grit.datasets.benchmarks.zinc_mini import bundled_smiles
from grit.recipe.load import load_recipe
from grit.training.fit import Comparison, compare
from grit.training.forest import packed_fingerprints
from grit.training.loop import Event
from grit.training.predictor import load as load_run
from grit.training.train import train

MOLECULES = {
    "aspirin": "CC(=O)Oc1ccccc1C(=O)O",
    "caffeine": "Cn1cnc2c1c(=O)n(C)c(=O)n2C",
    "fluorescein": "O=C1OC2(c3ccc(O)cc3Oc3cc(O)ccc32)c2ccccc21",
}
"""What everyone knows, by name, as SMILES."""


class DemoResult(NamedTuple):
    """Metrics on the test split, a prediction for each of `MOLECULES`, and how long training took."""

    comparison: Comparison
    predictions: dict[str, float]
    seconds: float


def run_demo(
    run: Path,
    seed: int,
    overrides: Sequence[str],
    watching: Callable[[str], AbstractContextManager[Callable[[Event], None]]],
    doing: Callable[[str], AbstractContextManager[object]],
) -> DemoResult:
    """Train on the bundled molecules, compare, and predict three that everyone knows.

    Args:
        run: The run folder, which must be new.
        seed: Of weights and shuffling.
        overrides: Changes to the recipe zinc-mini.
        watching: Called with the name of the metric and entered while the model is trained.
        doing: Called with what else is being done, and entered while it is.
    """
    with doing("preparing the molecules"):
        store = load("zinc-mini")
    recipe = load_recipe("zinc-mini", f"train.seed={seed}", *overrides)
    with watching(store.task.metric) as watch:
        result = train(recipe, run, store=store, watch=watch, resume=False)
    with doing("fingerprints and a random forest, to compare"):
        bundled = bundled_smiles()
        fingerprints = packed_fingerprints([bundled[int(row)] for row in store.rows])
        found = compare(store, result["test"], {"fingerprints": fingerprints}, seed)
    values = load_run(run).predict(list(MOLECULES.values()))
    predictions = {name: float(value[0]) for name, value in zip(MOLECULES, values, strict=True)}
    return DemoResult(found, predictions, result["seconds"])
