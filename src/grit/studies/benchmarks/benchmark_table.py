"""What the four studies of benchmark results share: train GRIT, and set it beside the published rows where that is fair."""

from collections.abc import Mapping, Sequence

from grit.studies.benchmarks.own_runs import OwnRun, read_own_runs
from grit.studies.benchmarks.published import GRIT, Column, PublishedTable
from grit.studies.results_table import Cell, ResultsTable
from grit.studies.runs import (
    AS_PUBLISHED,
    Outcome,
    StudySize,
    TrainingPlan,
    chosen,
    mean_and_sd,
    not_comparable,
    train_all,
)
from grit.studies.study import Workbench
from grit.studies.study_data import open_data
from grit.studies.systems import APPROXIMATION
from grit.training.seeds import p_value

SIGNIFICANT = 0.05


def run_benchmarks(bench: Workbench, published: PublishedTable, scales: Mapping[str, Mapping[str, StudySize]]) -> None:
    """Write the tables ``results`` and ``published``.

    Args:
        bench: Where to work.
        published: The paper's table.
        scales: Recipe -> budget -> scale; a budget that is not there is carried out as published.
    """
    names = chosen(bench, [column.recipe for column in published.columns], known=("only", "device", "ours"))
    own = read_own_runs(bench.options["ours"].split(",")) if "ours" in bench.options else {}
    columns = [column for column in published.columns if column.recipe in names]
    of = {name: scales[name].get(bench.budget, AS_PUBLISHED) for name in names}
    # All data first, so that a data set that is missing is known before hours of training.
    plans = {
        name: TrainingPlan(of[name].recipe(name), open_data(bench, name, of[name].sizes), of[name].seeds)
        for name in names
    }
    for plan in plans.values():
        if plan.data.note:
            bench.say(plan.data.note)
    outcomes = train_all(bench, plans)
    bench.table("results", results_table(bench.budget, published, columns, plans, outcomes, of))
    comparable = [column for column in columns if plans[column.recipe].data.is_benchmark]
    bench.table("published", published_table(published, comparable, outcomes, own))


def results_table(
    budget: str,
    published: PublishedTable,
    columns: Sequence[Column],
    plans: Mapping[str, TrainingPlan],
    outcomes: Mapping[str, Outcome],
    scales: Mapping[str, StudySize],
) -> ResultsTable:
    """One row per data set: ours, and, where all of it was trained on as published, the difference and its significance."""
    comparable = any(plans[column.recipe].data.is_benchmark for column in columns)
    rows: list[list[Cell]] = []
    for column in columns:
        plan, outcome = plans[column.recipe], outcomes[column.recipe]
        row: list[Cell] = [
            column.title,
            plan.data.sizes,
            plan.recipe.train.epochs,
            outcome.num_parameters,
            len(outcome.values),
            mean_and_sd(outcome.row),
        ]
        if comparable:
            row += _beside_the_paper(published, column, outcome) if plan.data.is_benchmark else [None] * 5
        rows.append(row)
    headings = ["data", "train / val / test", "epochs", "parameters", "runs", "ours, test"]
    if comparable:
        headings += ["paper", "difference", "best other system", "p", "significant"]
    remarks = [plan.data.note + "." for plan in plans.values() if plan.data.note]
    if comparable:
        remarks.append(
            "p: two-sample one-tailed t-test with equal variances, ours against the best other system of the published table; "
            f"significant below {SIGNIFICANT}. Single runs have none."
        )
    if budget != "paper":
        remarks.append(not_comparable(budget))
        remarks += _differences({column.heading: scales[column.recipe] for column in columns})
    elif not all(plan.data.is_benchmark for plan in plans.values()):
        remarks.append("Rows without the paper's number were not trained on the whole data set and are not comparable.")
    label = "" if budget == "paper" else f" (budget {budget}: not the published experiment)"
    return ResultsTable(f"GRIT, {published.source} of the paper{label}", headings, rows, remarks)


def _differences(scales: Mapping[str, StudySize]) -> list[str]:
    """What was changed for which data sets, a sentence per change."""
    headings: dict[str, list[str]] = {}
    for heading, scale in scales.items():
        headings.setdefault(scale.changes, []).append(heading)
    return [f"Different from the recipe, for {', '.join(names)}: {changes}." for changes, names in headings.items()]


def _beside_the_paper(published: PublishedTable, column: Column, outcome: Outcome) -> list[Cell]:
    theirs = published.row(GRIT, column.recipe)
    assert theirs is not None
    name, other = published.best_other(column)
    tested = min(outcome.row.runs, other.runs) > 1
    p = p_value(outcome.row, other, higher_is_better=column.higher_is_better) if tested else None
    return [
        published.printed(GRIT, column.recipe),
        f"{outcome.row.mean - theirs.mean:+.4f}",
        f"{name} {published.printed(name, column.recipe)}",
        p,
        None if p is None else p < SIGNIFICANT,
    ]


def published_table(
    published: PublishedTable,
    comparable: Sequence[Column],
    outcomes: Mapping[str, Outcome],
    own: Mapping[tuple[str, str], OwnRun] | None = None,
) -> ResultsTable:
    """The paper's table, all systems; ours is a row of it only for data sets on which it is comparable.

    Args:
        published: The paper's table.
        comparable: Data sets on which ours is comparable.
        outcomes: Ours, by recipe.
        own: Runs of the other systems made here, by data set and system; they get columns of their own.
    """
    own = own or {}
    with_own = [
        column for column in published.columns if any((column.recipe, system) in own for system in published.rows)
    ]
    rows: list[list[Cell]] = []
    for system, results in published.rows.items():
        stars = [
            result + (" *" if system == GRIT and column.recipe in published.starred else "")
            for result, column in zip(results, published.columns, strict=True)
        ]
        source = f"the paper, {published.source}" + ("" if system == GRIT else ", copied there")
        runs = [own.get((column.recipe, system)) for column in with_own]
        rows.append(
            [
                f"{system} (paper)" if system == GRIT else system,
                *(_cell(star) for star in stars),
                *(None if run is None else run.words for run in runs),
                source,
            ]
        )
    if comparable:
        ours = [
            mean_and_sd(outcomes[column.recipe].row) if column in comparable else None for column in published.columns
        ]
        rows.append([f"{GRIT} (this run)", *ours, *[None] * len(with_own), "trained here"])
    remarks = [published.remark] if published.remark else []
    remarks.append("Mean ± s.d. as printed. The paper took the other systems' rows from earlier publications.")
    if published.starred:
        remarks.append(
            "*: significantly better than the second-best system, as the paper says; `grit reproduce significance` computes it."
        )
    if with_own:
        remarks.append(
            "Run here: results of runs made before (`ours=`), in brackets how long they trained. Only runs as long as published "
            "on the whole data set can be compared with the printed numbers."
        )
        if any(run.is_approximation for run in own.values()):
            remarks.append(APPROXIMATION)
    headings = (
        "system",
        *(column.title for column in published.columns),
        *(f"run here: {column.heading}" for column in with_own),
        "source",
    )
    return ResultsTable(f"Published results, {published.source} of the paper", headings, rows, remarks)


def _cell(printed: str) -> Cell:
    return None if printed == "-" else printed
