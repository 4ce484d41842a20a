import pytest

import grit
from grit.studies.benchmarks.published import GRIT, LRGB, PCQM4MV2, TABLE_1, ZINC_FULL
from grit.training.seeds import SeedResults

TABLES = (TABLE_1, LRGB, ZINC_FULL, PCQM4MV2)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.source)
def test_every_row_is_complete_and_readable(table):
    for system, results in table.rows.items():
        assert len(results) == len(table.columns), system
        for column in table.columns:
            row = table.row(system, column.recipe)
            assert (row is None) == (table.printed(system, column.recipe) == "-")


def test_number_of_systems():
    assert [len(table.rows) for table in TABLES] == [19, 9, 12, 11]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.source)
def test_grit_is_what_the_recipes_say(table):
    for column in table.columns:
        paper = grit.load_recipe(column.recipe).paper
        row = table.row(GRIT, column.recipe)
        assert (row.mean, row.sd) == (paper.mean, paper.sd or 0)


def test_numbers():
    assert TABLE_1.row("SAN", "cluster") == SeedResults(76.691, 0.65, 10)
    assert TABLE_1.row(GRIT, "zinc") == SeedResults(0.059, 0.002, 4)
    assert TABLE_1.row("GSN", "mnist") is None
    assert PCQM4MV2.row("GRPE", "pcqm4mv2") == SeedResults(0.089, 0, 1)


def test_the_best_other_systems():
    best = {c.recipe: table.best_other(c)[0] for table in TABLES for c in table.columns}
    assert best == {
        "zinc": "GPS",
        "mnist": "EGT",
        "cifar10": "DGN",
        "pattern": "GIN-AK+",
        "cluster": "EGT",
        "peptides-func": "GPS",
        "peptides-struct": "GPS",
        "zinc-full": "SignNet",
        "pcqm4mv2": "GPS-medium",
    }
