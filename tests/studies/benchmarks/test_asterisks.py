import json

import pytest

import grit
from grit.studies import STUDIES, Workbench
from grit.studies.benchmarks.asterisks import RECORDED
from grit.training.seeds import SeedResults, p_value


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    bench = Workbench(tmp_path_factory.mktemp("significance"), "paper")
    STUDIES["significance"].run(bench)
    return {
        row["data"].split(",")[0]: row for row in json.loads((bench.folder / "significance.json").read_text())["rows"]
    }


def test_the_six_asterisks_follow_and_mnist_has_none(rows):
    significant = {name for name, row in rows.items() if row["p < 0.05"]}
    assert significant == {"ZINC", "CIFAR10", "PATTERN", "CLUSTER", "Peptides-func", "Peptides-struct"}
    assert all(row["verdict"] == "agrees" for row in rows.values())
    assert len(rows) == len(RECORDED) == 8


def test_recorded_values(rows):
    for row in rows.values():
        assert row["p"] == pytest.approx(row["recorded p"], rel=0.05)
        if row["recorded p (Welch)"] is not None:
            assert row["p (Welch)"] == pytest.approx(row["recorded p (Welch)"], rel=0.05)


def test_welch_equals_the_pooled_test_for_equal_deviations_and_runs():
    ours, theirs = SeedResults(0.2460, 0.0012, 4), SeedResults(0.2500, 0.0012, 4)
    pooled = p_value(ours, theirs, higher_is_better=False)
    assert p_value(ours, theirs, higher_is_better=False, equal_variances=False) == pytest.approx(pooled)
    assert p_value(ours, theirs, higher_is_better=True, equal_variances=False) == pytest.approx(1 - pooled)


def test_has_no_options(tmp_path):
    with pytest.raises(grit.GritError, match="no option 'only'; it has none"):
        STUDIES["significance"].run(Workbench(tmp_path, options={"only": "zinc"}))
