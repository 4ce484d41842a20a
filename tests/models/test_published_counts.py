"""Parameter counts of docs/baselines.md: every recipe of another model than GRIT has a row, and the row is true."""

import re
from pathlib import Path

import pytest

from grit.datasets import load_schema
from grit.graphs.schema import Features
from grit.recipe.builder import build_model
from grit.recipe.load import load_recipe, recipes
from grit.recipe.model_config import wanted_statistics

PAGE = Path(__file__).parents[2] / "docs" / "baselines.md"
ROW = re.compile(
    r"^\| [^|]+ \| `(?P<recipe>[\w-]+)` \| (?P<ours>[\d,]+) \| (?P<published>[\d,]+|–) \|(?P<differs>[^|]*)\|$"
)
DEGREES = [0, 1_000, 3_000, 2_000, 300]  # of molecules, about; no count of parameters depends on it


def rows():
    matches = [ROW.match(line) for line in PAGE.read_text(encoding="utf-8").splitlines() if re.match(r"^\| .*`", line)]
    assert all(matches), "every row has system, recipe, ours, published, what differs"
    return {match["recipe"]: match for match in matches}


def built(recipe):
    """The model with as many atom types as the authors' code has, 28."""
    schema = load_schema(recipe.dataset)
    if recipe.dataset == "zinc":
        schema = schema.model_copy(update={"node": Features(kind="category", sizes=(28,))})
    statistics = dict.fromkeys(wanted_statistics(recipe.model.name), DEGREES)
    return build_model(recipe, schema, statistics=statistics)


def others():
    return [name for name in recipes() if load_recipe(name).model.name != "grit"]


def test_every_recipe_has_a_row():
    assert set(rows()) == set(others())


@pytest.mark.parametrize("name", others())
def test_the_row_is_true(name):
    row, recipe = rows()[name], load_recipe(name)
    ours = sum(parameter.numel() for parameter in built(recipe).parameters())
    published = recipe.paper.num_parameters if recipe.paper is not None else None
    assert row["ours"] == f"{ours:,}"
    assert row["published"] == ("–" if published is None else f"{published:,}")
    if published is not None and published != ours:
        assert row["differs"].strip(), "a difference is explained"


@pytest.mark.parametrize("name", others())
def test_approximations_are_called_so(name):
    """Tables mark what the recipe calls an approximation, and the page says the same in the same words."""
    differs, paper = rows()[name]["differs"].strip(), load_recipe(name).paper
    approximation = None if paper is None else paper.approximation
    assert differs.startswith("**approximation**") == (approximation is not None)
    assert approximation is None or approximation in differs
