"""All systems with a recipe for one data set, each under the same budget.

``grit reproduce race [dataset=zinc] [budget=epochs:5 | time:10 | published] [only=zinc-gcn,zinc] [seeds=0,1] [device=cuda]``

``--budget`` says how much data there is (smoke: 40 graphs and two layers; small: at most 10,000 training graphs, which is all of
ZINC; paper: all of any data set), ``budget=`` how long each system may learn from it.
"""

from collections.abc import Sequence
from typing import Any

import torch

from grit.datasets import store_path
from grit.errors import GritError, Interrupted
from grit.recipe.config import Recipe
from grit.studies.race.budget import DEFAULTS, RaceBudget, parse_budget
from grit.studies.race.entry import Entry
from grit.studies.race.probe import ProbeRequest, ProbeResult, as_probe, measure_apart
from grit.studies.race.tables import race_figure, race_table
from grit.studies.runs import StudySize, TrainingPlan, chosen, train_seed
from grit.studies.runtime.runtime_table import describe_machine
from grit.studies.study import Workbench
from grit.studies.study_data import StudyData, open_data
from grit.studies.systems import System, find_systems

SIZES = {
    "smoke": StudySize(seeds=(0,), sizes=(40, 10, 10), overrides=("train.batch_size=8",)),
    "small": StudySize(seeds=(0,), sizes=(10_000, 1_000, 1_000)),
    "paper": StudySize(),
}
ROUNDS = {"smoke": 2, "small": 10, "paper": 20}  # steps that are timed
SMOKE_LAYERS = 2
OPTIONS = ("dataset", "budget", "only", "seeds", "device")

# What a system of its own can raise, out of memory included. A full disk (OSError) stops the race.
OF_ONE_SYSTEM = (ArithmeticError, AssertionError, LookupError, MemoryError, RuntimeError, TypeError, ValueError)


def run(bench: Workbench) -> None:
    """Write the table and the figure ``race``."""
    bench.check_options(*OPTIONS)
    systems = find_systems(bench.option("dataset", "zinc"))
    names = chosen(bench, systems, known=OPTIONS)
    budget = parse_budget(bench.option("budget", DEFAULTS[bench.budget]))
    seeds = parse_seeds(bench.option("seeds", ",".join(map(str, SIZES[bench.budget].seeds))))
    dataset = systems[names[0]].recipe.dataset
    data = open_data(bench, dataset, SIZES[bench.budget].sizes)
    if data.note:
        bench.say(data.note)
    bench.say(f"{len(names)} systems, {len(seeds)} seed(s), {budget.words}")
    contest = Contest(bench, data, budget)
    entries = {name: Entry(systems[name]) for name in names}
    # Every system has its first seed before any has its second.
    for name, seed in bench.track([(name, seed) for seed in seeds for name in names], "runs"):
        if entries[name].failure is None:
            entries[name] = contest.advance(name, entries[name], seed)
    if not any(entry.results for entry in entries.values()):
        raise GritError(f"no system could be trained. {names[0]}: {entries[names[0]].failure}")
    device = bench.option("device", "auto")
    with_gpu = device != "cpu" and (device != "auto" or torch.cuda.is_available())
    machine = bench.piece("machine", lambda: describe_machine(f"device {device}" if with_gpu else "no GPU used"))
    bench.table("race", race_table(entries, data, budget, bench.budget, seeds, machine))
    bench.figure("race", race_figure(entries, data, budget))


class Contest:
    """Trains one system after the other.

    Args:
        bench: Where to work.
        data: What all are trained on.
        budget: What each is given.
    """

    def __init__(self, bench: Workbench, data: StudyData, budget: RaceBudget) -> None:
        self.bench, self.data, self.budget = bench, data, budget

    def advance(self, name: str, entry: Entry, seed: int) -> Entry:
        """The entry with one more run, or with the reason why there is none."""
        probe = entry.probe
        try:
            probe = probe or self._probe(name, entry.system)
            recipe = self._recipe(name, entry.system, *self.budget.overrides(probe))
            plan = TrainingPlan(recipe, self.data, (seed,))
            if not entry.results:
                self.bench.say(f"{name}: {recipe.train.epochs} epochs of about {probe.epoch:.3g} s")
            result = train_seed(self.bench, name, plan, seed)
        except Interrupted:
            raise
        except OF_ONE_SYSTEM as error:
            why = reason(error)
            self.bench.say(f"{name}, seed {seed}: FAILED: {why}")
            return entry._replace(probe=probe, failure=f"seed {seed}: {why}")
        return entry._replace(probe=probe, epochs=recipe.train.epochs, results=(*entry.results, result))

    def _probe(self, name: str, system: System) -> ProbeResult:
        found: list[Any] = self.bench.piece(
            f"probe {name}", lambda: list(measure_apart(self._request(self._recipe(name, system))))
        )
        return as_probe(found)

    def _recipe(self, name: str, system: System, *overrides: str) -> Recipe:
        size = SIZES[self.bench.budget]
        fewer = self.bench.budget == "smoke" and system.recipe.model.options().get("num_layers", 0) > SMOKE_LAYERS
        layers = (f"model.num_layers={SMOKE_LAYERS}",) if fewer else ()
        return size.recipe(name, *layers, *overrides)

    def _request(self, recipe: Recipe) -> ProbeRequest:
        path = store_path(recipe.dataset, self.bench.root)
        return ProbeRequest(
            recipe=recipe.model_dump(mode="json"),
            store=str(path) if path.exists() else None,
            sizes=SIZES[self.bench.budget].sizes,
            rounds=ROUNDS[self.bench.budget],
            threads=torch.get_num_threads(),
            device=self.bench.option("device", "auto"),
        )


def parse_seeds(text: str) -> tuple[int, ...]:
    """``0,1,2``, each once."""
    seeds = text.split(",")
    if not all(seed.isascii() and seed.isdigit() and len(seed) < 10 for seed in seeds) or len(set(seeds)) < len(seeds):
        raise GritError(f"seeds={text}: expected whole numbers with commas between, each once, such as seeds=0,1,2.")
    return tuple(map(int, seeds))


def reason(error: BaseException) -> str:
    """Why a system failed, in one line."""
    lines: Sequence[str] = str(error).strip().splitlines() or [""]
    text = lines[0] if len(lines[0]) <= 200 else f"{lines[0][:200]} ..."
    return text if isinstance(error, GritError) else f"{type(error).__name__}: {text}".removesuffix(": ")
