"""Which hard pairs does each system tell apart, with random weights? And does that keep to the bound that is known of it?

The models see graphs without features. Their weights are those they begin with and a little noise, so that nothing is zero by
design. What no weights can tell apart has the same output but for rounding; what some can, random ones do almost surely.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from grit.batches.pair_batch import PairBatch
from grit.datasets.own.graph_lists import from_pyg
from grit.errors import GritError
from grit.graphs.schema import Features, GraphSchema
from grit.models import MODELS
from grit.models.blocks import Draws
from grit.recipe.builder import build_model, training_statistics
from grit.recipe.config import Recipe
from grit.recipe.model_config import parse_model
from grit.studies.results_table import Cell, ResultsTable
from grit.studies.systems import APPROXIMATION, System
from grit.studies.theory.gdwl import Adjacency, Distance, edges, gdwl, shortest_paths, walks
from grit.studies.theory.output_gap import GAP_FLOOR, NUM_OUTPUTS, SEEDS, as_data, renumbered

Pairs = Mapping[str, tuple[Adjacency, Adjacency]]
MAX_LAYERS = 4
NOISE = 0.05
NUM_DRAWS = 128
STANDARD_ERRORS = 6  # by which the means of two sets of draws differ where the distributions do
SCHEMA = GraphSchema(node=Features(kind="none"), edge=Features(kind="none"), num_outputs=NUM_OUTPUTS)


class Separation(NamedTuple):
    """What a system makes of a pair; plain JSON.

    Attributes:
        gap: ‖f(one) - f(other)‖ / ‖f(one)‖, the largest over several weights, of mean outputs where the system draws.
        is_apart: Whether that is more than rounding, or chance.
        is_sure: Whether each graph gives the same output when it is renumbered, so that ``is_apart`` means something.
        failure: Why there is no output; the others mean nothing then.
        is_drawn: Whether the outputs depend on random numbers: then a small difference may not be seen.
    """

    gap: float
    is_apart: bool
    is_sure: bool
    failure: str | None = None
    is_drawn: bool = False

    @property
    def words(self) -> str:
        """For a cell."""
        if self.failure is not None:
            return "–"
        if not self.is_sure:
            return "?"
        if self.is_apart:
            return f"yes, {self.gap:.0e}"
        return "not seen" if self.is_drawn else "no"


def compare_pairs(system: System, pairs: Pairs) -> dict[str, Separation]:
    """What a system makes of each pair."""
    recipe = _shallow(system.recipe)
    statistics = _statistics(recipe, pairs)
    seeds = SEEDS[:1] if MODELS[recipe.model.name].draws else SEEDS  # many draws take the place of many weights
    models = [_random_model(recipe, statistics, seed) for seed in seeds]
    with _one_thread():
        return {name: _compare(recipe, models, *pair) for name, pair in pairs.items()}


@contextmanager
def _one_thread() -> Iterator[None]:
    """These graphs are so small that threads spend their time waiting for one another."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _shallow(recipe: Recipe) -> Recipe:
    """The recipe with at most `MAX_LAYERS` layers, where their number is an option."""
    options = recipe.model.model_dump()
    if options.get("num_layers", 0) <= MAX_LAYERS:
        return recipe
    return recipe.model_copy(update={"model": parse_model({**options, "num_layers": MAX_LAYERS})})


def _statistics(recipe: Recipe, pairs: Pairs) -> dict[str, Any]:
    """What the model asks for of a training set: of all these graphs."""
    graphs = [as_data(graph) for pair in pairs.values() for graph in pair]
    for data in graphs:
        data.y = torch.zeros(1)
    return training_statistics(recipe, from_pyg(graphs, splits={"train": range(len(graphs))}, task="regression"))


def _random_model(recipe: Recipe, statistics: Mapping[str, Any], seed: int) -> nn.Module:
    seeded = recipe.model_copy(update={"train": recipe.train.model_copy(update={"seed": seed})})
    model = build_model(seeded, SCHEMA, statistics=statistics).double().eval()
    noise = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(NOISE * torch.randn(parameter.shape, generator=noise, dtype=parameter.dtype))
    return model


def _compare(recipe: Recipe, models: list[nn.Module], one: Adjacency, other: Adjacency) -> Separation:
    gaps, apart, sure = [], False, True
    try:
        # One graph at a time: in a batch the two would go through differently shaped matrix products.
        spec = vars(recipe.batch_spec(torch.float64))
        graphs = (one, other, renumbered(one), renumbered(other))
        batches = [PairBatch.from_data_list([as_data(graph)], **spec) for graph in graphs]
        for model in models:
            here, there, *moved = (_outputs(model, batch) for batch in batches)
            means = here.mean(0), there.mean(0)
            gaps.append(float((means[0] - means[1]).norm() / means[0].norm()))
            apart |= _differ(here, there)
            sure &= not _differ(here, moved[0]) and not _differ(there, moved[1])
    except GritError as error:
        return Separation(0.0, False, False, str(error).splitlines()[0])
    return Separation(max(gaps), apart, sure, is_drawn=MODELS[recipe.model.name].draws)


@torch.no_grad()
def _outputs(model: nn.Module, batch: PairBatch) -> Tensor:
    """(draws, outputs): one draw of a system that draws nothing."""
    if not isinstance(model, Draws):
        single: Tensor = model(batch)
        return single
    found = []
    for seed in range(NUM_DRAWS):
        model.eval_seed = seed
        found.append(model(batch)[0])
    return torch.stack(found)


def _differ(one: Tensor, other: Tensor) -> bool:
    gap = (one.mean(0) - other.mean(0)).abs()
    if len(one) == 1:
        return bool(gap.norm() > GAP_FLOOR * one.norm())
    error = ((one.var(0) + other.var(0)) / len(one)).sqrt()
    return bool((gap > STANDARD_ERRORS * error + GAP_FLOOR * one.mean(0).norm()).any())


def bound_of(system: System) -> tuple[str, Distance] | None:
    """The test that bounds a system, in words and as a distance for `gdwl`; None where none is claimed."""
    recipe, kind = system.recipe, MODELS[system.recipe.model.name]
    encoding, steps = recipe.encoding.name, recipe.encoding.walk_steps
    if kind.bound is None or kind.structures(recipe.model.options()):
        return None
    if encoding == "none":
        return "1-WL", edges
    if kind.bound == "GD-WL" and encoding == "spd":
        return "GD-WL, SPD", shortest_paths
    if kind.bound == "GD-WL" and encoding == "rrwp":
        return f"GD-WL, RRWP K={steps}", walks(steps)
    return None


def broken_bounds(system: System, found: Mapping[str, Separation], pairs: Pairs) -> list[str]:
    """Pairs that a system tells apart although its bound cannot."""
    bound = bound_of(system)
    if bound is None:
        return []
    apart = [name for name, comparison in found.items() if comparison.is_apart and comparison.is_sure]
    return [name for name in apart if len(set(gdwl(pairs[name], bound[1]))) == 1]


def systems_table(
    systems: Mapping[str, System], found: Mapping[str, Mapping[str, Separation]], pairs: Pairs
) -> ResultsTable:
    """One row per system, a column per pair."""
    rows: list[list[Cell]] = []
    failures: dict[str, list[str]] = {}
    for name, system in systems.items():
        bound, broken = bound_of(system), broken_bounds(system, found[name], pairs)
        verdict = "no bound claimed" if bound is None else "agrees"
        rows.append(
            [
                system.marked,
                name,
                _reads(system),
                *(comparison.words for comparison in found[name].values()),
                None if bound is None else bound[0],
                f"BROKEN: {', '.join(broken)}" if broken else verdict,
            ]
        )
        for pair, comparison in found[name].items():
            if comparison.failure is not None:
                failures.setdefault(comparison.failure, []).append(f"{system.title} on {pair}")
    remarks = [
        "yes: the outputs for the two graphs differ, and by how much, relative to their size. no: they are equal but for "
        f"rounding (below {GAP_FLOOR:g}). ?: not judged, because the output for a graph depends on how its nodes are numbered, "
        "as with eigenvectors of eigenvalues that occur several times. –: no output.",
        f"The published configurations with at most {MAX_LAYERS} layers, without features, float64, evaluation mode, random "
        f"weights; the largest of {len(SEEDS)} seeds. Systems that draw random numbers: one seed, means of {NUM_DRAWS} draws, "
        f"which differ where they are {STANDARD_ERRORS} standard errors apart. Smaller differences are not seen.",
        "Bound: a test that is known to tell apart whatever the system does. The verdict is BROKEN where the system tells apart "
        "what the test, computed exactly, cannot. No pair here is told apart by 1-WL.",
        *(f"–: {', '.join(where)}: {failure}" for failure, where in failures.items()),
    ]
    if any(system.approximation for system in systems.values()):
        remarks.append(APPROXIMATION)
    columns = ("system", "recipe", "reads", *pairs, "bound", "verdict")
    return ResultsTable("Systems against hard pairs: does a random model tell them apart?", columns, rows, remarks)


def _reads(system: System) -> str:
    """Encoding and structures."""
    recipe = system.recipe
    encoding = [f"{recipe.encoding.name} {recipe.encoding.walk_steps}"] if recipe.encoding.name != "none" else []
    return ", ".join([*encoding, *MODELS[recipe.model.name].structures(recipe.model.options())]) or "edges"


def as_comparisons(tree: Mapping[str, Any]) -> dict[str, Separation]:
    """From plain JSON."""
    return {name: Separation(*fields) for name, fields in tree.items()}
