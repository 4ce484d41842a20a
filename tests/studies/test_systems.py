import pytest

import grit
from grit.datasets import DATASETS
from grit.recipe.load import load_recipe, recipes
from grit.studies.benchmarks.published import LRGB, PCQM4MV2, TABLE_1, ZINC_FULL
from grit.studies.systems import System, find_systems, system_title

TABLES = (TABLE_1, LRGB, ZINC_FULL, PCQM4MV2)
# Table 5, MAE on ZINC.
ABLATIONS = {
    "zinc-no-degree-scaler": (0.076, 0.002),
    "zinc-no-pair-update": (0.066, 0.005),
    "zinc-sparse-attention": (0.066, 0.002),
    "zinc-degree-encoding": (0.072, 0.005),
    "zinc-graphormer-attention": (0.117, 0.028),
    "zinc-rwse": (0.081, 0.010),
    "zinc-spd": (0.067, 0.002),
}
COLUMNS = [(table, column.recipe) for table in TABLES for column in table.columns]


def test_ablations_and_other_data_sets_are_no_systems():
    found = find_systems("zinc")
    assert next(iter(found)) == "zinc"
    assert found["zinc"].title == found["zinc"].family == "GRIT"
    assert (found["zinc-gps"].title, found["zinc-gps"].family) == ("GPS", "transformer")
    assert not {"zinc-spd", "zinc-rwse", "zinc-mini", "zinc-full", "zinc-sparse-attention"} & set(found)
    assert "peptides-func-paper" not in find_systems("peptides-func")


@pytest.mark.parametrize(("table", "dataset"), COLUMNS, ids=lambda value: value if isinstance(value, str) else "")
def test_recipes_have_the_figures_of_the_papers_tables(table, dataset):
    """Where the table has a row for the system after which a recipe is named, that is the recipe's figure."""
    assert dataset in DATASETS
    for name, system in find_systems(dataset).items():
        printed = table.row(system.title, dataset) if system.title in table.rows else None
        if printed is not None:
            assert (system.recipe.paper.mean, system.recipe.paper.sd) == (printed.mean, printed.sd or None), name


def figures():
    """The figure of every recipe that has one."""
    papers = {name: load_recipe(name).paper for name in recipes()}
    return {
        name: (paper.mean, paper.sd) for name, paper in papers.items() if paper is not None and paper.mean is not None
    }


def test_recipes_have_no_figures_of_other_papers():
    """Every figure of a recipe stands in a table of the paper, for that system on that data set."""
    tables = {dataset: table for table, dataset in COLUMNS}
    expected = {}
    for name in figures():
        dataset = load_recipe(name).dataset
        title = system_title(name.removesuffix("-paper"), dataset)
        if name in ABLATIONS:
            expected[name] = ABLATIONS[name]
        elif title in tables[dataset].rows and (row := tables[dataset].row(title, dataset)) is not None:
            expected[name] = (row.mean, row.sd or None)
    assert figures() == expected
    assert set(ABLATIONS) < set(expected)


def test_approximations_are_marked():
    recipe = grit.load_recipe("zinc-gps", 'paper.approximation="attention without dropout"')
    assert System("GPS", recipe).marked == "GPS ≈"
    assert System("GPS", grit.load_recipe("zinc-gps")).marked == "GPS"
