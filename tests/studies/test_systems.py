import pytest

import grit
from grit.datasets import DATASETS
from grit.studies.benchmarks.published import LRGB, PCQM4MV2, TABLE_1, ZINC_FULL
from grit.studies.systems import System, find_systems

TABLES = (TABLE_1, LRGB, ZINC_FULL, PCQM4MV2)
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


def test_approximations_are_marked():
    recipe = grit.load_recipe("zinc-gps", 'paper.approximation="attention without dropout"')
    assert System("GPS", recipe).marked == "GPS ≈"
    assert System("GPS", grit.load_recipe("zinc-gps")).marked == "GPS"
