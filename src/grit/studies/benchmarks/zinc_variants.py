"""What the studies of ZINC with changed models share: every variant on the same graphs with the same seeds, in one table."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from grit.recipe.config import Recipe
from grit.studies.results_table import Cell, ResultsTable
from grit.studies.runs import (
    AS_PUBLISHED,
    SMOKE,
    Outcome,
    StudySize,
    TrainingPlan,
    chosen,
    mean_and_sd,
    not_comparable,
    train_all,
)
from grit.studies.study import Workbench
from grit.studies.study_data import StudyData, open_data

SCALES = {
    "smoke": SMOKE._replace(overrides=tuple(each for each in SMOKE.overrides if not each.startswith("encoding"))),
    "small": StudySize(seeds=(0, 1), sizes=(2_000, 1_000, 1_000), overrides=("model.num_layers=4", "train.epochs=20")),
    "paper": AS_PUBLISHED,
}


class Variant(NamedTuple):
    """One row.

    Attributes:
        title: As the table shows it.
        recipe: Its recipe.
        overrides: Further changes.
        paper: What the paper has, as printed; None where it has nothing.
    """

    title: str
    recipe: str
    overrides: tuple[str, ...]
    paper: str | None


def train_variants(bench: Workbench, variants: Mapping[str, Variant], base: str, title: str, remark: str) -> None:
    """Train the variants and write the table ``results``; ``base`` is the one that changes are measured from."""
    scale = SCALES[bench.budget]
    names = chosen(bench, variants)
    data = open_data(bench, "zinc", scale.sizes)
    if data.note:
        bench.say(data.note)
    recipes = {name: scale.recipe(variants[name].recipe, *variants[name].overrides) for name in names}
    outcomes = train_all(bench, {name: TrainingPlan(recipes[name], data, scale.seeds) for name in names})
    table = variants_table(bench.budget, title, variants, base, recipes, outcomes, data, scale)
    bench.table("results", ResultsTable(table.title, table.columns, table.rows, [*table.remarks, remark]))


def variants_table(
    budget: str,
    title: str,
    variants: Mapping[str, Variant],
    base: str,
    recipes: Mapping[str, Recipe],
    outcomes: Mapping[str, Outcome],
    data: StudyData,
    scale: StudySize,
) -> ResultsTable:
    """One row per variant: ours, the change from our own base, and what the paper has."""
    rows: list[list[Cell]] = []
    for name, outcome in outcomes.items():
        change = None
        if base in outcomes and name != base:
            change = f"{outcome.row.mean - outcomes[base].row.mean:+.4f}"
        row: list[Cell] = [variants[name].title, outcome.num_parameters, mean_and_sd(outcome.row), change]
        rows.append([*row, variants[name].paper, *_difference(variants[name], outcome, data)])
    epochs = next(iter(recipes.values())).train.epochs
    remarks = [
        f"{data.store.name}: {data.sizes} graphs of train, validation and test, {epochs} epochs, seeds "
        f"{', '.join(map(str, scale.seeds))}; mean ± s.d. of the test MAE at the best epoch by validation. Lower is better. "
        "Changes are from the same run's base."
    ]
    if data.note:
        remarks.append(f"{data.note}.")
    if budget != "paper":
        remarks += [not_comparable(budget), f"Different from the recipes, for all rows: {scale.changes}."]
    elif not data.is_benchmark:
        remarks.append("Not trained on the whole data set, and not comparable with the paper.")
    columns = ["row", "parameters", "ours, MAE", "ours, change", "paper, MAE"]
    return ResultsTable(
        title if data.is_benchmark else f"{title} (budget {budget}: not the published experiment)",
        [*columns, "ours - paper"] if data.is_benchmark else columns,
        rows,
        remarks,
    )


def _difference(variant: Variant, outcome: Outcome, data: StudyData) -> Sequence[Cell]:
    if not data.is_benchmark:
        return []
    return [None if variant.paper is None else f"{outcome.row.mean - float(variant.paper.split()[0]):+.4f}"]
