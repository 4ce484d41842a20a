"""Training for a study: recipes, several seeds each, in run folders that an interrupted study goes on with to the bit."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from grit.errors import GritError, Interrupted
from grit.learning.metrics import METRICS
from grit.recipe.config import Recipe
from grit.recipe.load import load_recipe, scale_warmup
from grit.studies.study import Workbench
from grit.studies.study_data import Sizes, StudyData
from grit.training.loop import Event
from grit.training.seeds import SeedResults, summarise
from grit.training.train import RunOptions, train


class StudySize(NamedTuple):
    """How much of an experiment a budget carries out.

    Attributes:
        seeds: One run each.
        sizes: Graphs of train, val and test, at most; None for all.
        overrides: Changes to the recipe.
    """

    seeds: tuple[int, ...] = (0, 1, 2, 3)
    sizes: Sizes | None = None
    overrides: tuple[str, ...] = ()

    def recipe(self, name: str, *further: str) -> Recipe:
        """The recipe of that name at this scale, its warm-up in proportion."""
        overrides = (*self.overrides, *further)
        return scale_warmup(load_recipe(name, *overrides), load_recipe(name), overrides, None)

    @property
    def changes(self) -> str:
        """The overrides in words."""
        return ", ".join(self.overrides) or "nothing"


AS_PUBLISHED = StudySize()
SMOKE = StudySize(
    seeds=(0, 1),
    sizes=(40, 10, 10),
    overrides=(
        "encoding.walk_steps=4",
        "model.num_layers=2",
        "model.hidden_dim=16",
        "model.num_heads=2",
        "train.batch_size=8",
        "train.epochs=1",
    ),
)


class TrainingPlan(NamedTuple):
    """What is trained for one row: a recipe without its seed, on some data, with several seeds."""

    recipe: Recipe
    data: StudyData
    seeds: tuple[int, ...]


class Outcome(NamedTuple):
    """What came out of a plan.

    Attributes:
        values: Test metric of each seed at its best epoch by validation, accuracies in percent, as the paper has them.
        num_parameters: Of the model.
        seconds: Of all seeds together.
    """

    values: list[float]
    num_parameters: int
    seconds: float

    @property
    def row(self) -> SeedResults:
        """Mean, deviation and number of runs."""
        return summarise(self.values)


def train_all(bench: Workbench, plans: Mapping[str, TrainingPlan]) -> dict[str, Outcome]:
    """Train every plan with every seed, in ``runs/<name>/seed<k>``; all plans have their first seed before any has its second."""
    most = max(len(plan.seeds) for plan in plans.values())
    order = [
        (name, plan, plan.seeds[turn]) for turn in range(most) for name, plan in plans.items() if turn < len(plan.seeds)
    ]
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in plans}
    for name, plan, seed in bench.track(order, "runs"):
        results[name].append(train_seed(bench, name, plan, seed))
    return {name: outcome_of(found) for name, found in results.items()}


def train_seed(bench: Workbench, name: str, plan: TrainingPlan, seed: int) -> dict[str, Any]:
    """Train a plan with one seed in ``runs/<name>/seed<k>``, or go on with it, or give what came out before."""
    recipe = plan.recipe.model_copy(update={"train": plan.recipe.train.model_copy(update={"seed": seed})})
    title = f"{name}, seed {seed}"
    try:
        result = train(
            recipe,
            bench.folder / "runs" / name / f"seed{seed}",
            store=plan.data.store,
            resume=True,
            options=RunOptions(device=bench.option("device", "auto"), root=bench.root),
            watch=_teller(bench, title),
            say=lambda line: bench.say(f"{title}: {line}"),
        )
    except Interrupted as stopped:
        raise Interrupted(f"{title}: {stopped} The same command goes on.") from None
    bench.say(f"{title}: test {result['metric']} {result['test'][result['metric']]:.4g}")
    return result


def _teller(bench: Workbench, title: str) -> Callable[[Event], None]:
    """Says how a run stands, about ten times."""

    def tell(event: Event) -> None:
        every = max(1, event.epochs // 10)
        if event.metrics and (event.epoch + 1) % every == 0 and event.epochs > 1:
            metrics = ", ".join(f"{name} {value:.4g}" for name, value in event.metrics.items())
            bench.say(f"{title}: epoch {event.epoch + 1} of {event.epochs}, validation {metrics}")

    return tell


def outcome_of(results: list[dict[str, Any]]) -> Outcome:
    """What several runs of one plan have in common."""
    values = [result["test"][result["metric"]] for result in results]
    percent = 100 if METRICS[results[0]["metric"]].in_percent else 1
    return Outcome(
        [percent * value for value in values],
        results[0]["num_parameters"],
        sum(result["seconds"] for result in results),
    )


def chosen(bench: Workbench, names: Iterable[str], known: tuple[str, ...] = ("only", "device")) -> list[str]:
    """Those of ``names`` that the option ``only`` lists, or all.

    Args:
        bench: Whose options count.
        names: That there are.
        known: The options of the study.
    """
    bench.check_options(*known)
    listed = list(names)
    wanted = bench.option("only", ",".join(listed)).split(",")
    unknown = [name for name in wanted if name not in listed]
    if unknown:
        raise GritError(f"only={','.join(wanted)}: there is no {unknown[0]!r}; there are {', '.join(listed)}.")
    return [name for name in listed if name in wanted]


def mean_and_sd(row: SeedResults, digits: int = 4) -> str:
    """``0.0590 ± 0.0020``; the mean alone where there is one run."""
    return f"{row.mean:.{digits}f}" + (f" ± {row.sd:.{digits}f}" if row.runs > 1 else "")


def not_comparable(budget: str) -> str:
    """The remark of every table of results of a reduced budget."""
    return (
        f"NOT COMPARABLE WITH THE PAPER: with the budget {budget!r} there are fewer graphs and epochs than published, and no "
        "number here says how good the published model is. `--budget paper` is the experiment."
    )
