"""The tables of the study, from figures that were made up."""

import pytest
from scipy.stats import ttest_rel

from grit.studies.predictor.molecule_data import MOLECULE_DATA
from grit.studies.predictor.tables import comparison_table, coverage_table, paired_p
from grit.studies.predictor.trial import Trial


def made_up(values, chance=None, coverage=None):
    titles = {"grit": "GRIT", "ensemble": "GRIT, ensemble of 5", "forest": "forest"}
    shares = coverage or {"grit": 0.9}
    return Trial(
        sizes=[800, 100, 100],
        skipped=0,
        values=values,
        titles=titles,
        seconds=dict.fromkeys(values, 2.0),
        chance=chance or {},
        coverage=shares,
        width={name: None if share is None else 2.0 for name, share in shares.items()},
    )


def test_the_best_is_first_whether_higher_or_lower_is_better():
    trials = [made_up({"grit": 0.7, "ensemble": 0.8, "forest": 0.9})]
    for name, first in (("esol", "GRIT"), ("bbbp", "forest")):
        table = comparison_table(MOLECULE_DATA[name], "random", trials, [0], "as it comes", "paper")
        assert table.rows[0][0] == first
        assert any(f"best mean: {first}." in remark for remark in table.remarks)


def test_differences_are_paired_by_seed():
    grit, forest, chances = [0.5, 0.6, 0.9], [0.6, 0.8, 1.0], [0.01, 0.2, 0.04]
    trials = [
        made_up({"grit": one, "forest": other}, {"grit": {"forest": p}})
        for one, other, p in zip(grit, forest, chances, strict=True)
    ]
    table = comparison_table(MOLECULE_DATA["esol"], "scaffold", trials, [0, 1, 2], "as it comes", "small")
    rows = {row["predictor"]: row for row in table.tree()["rows"]}
    assert rows["forest"]["GRIT minus this"] == "-0.1333"
    assert float(rows["forest"]["GRIT: p over seeds"]) == pytest.approx(ttest_rel(grit, forest).pvalue, rel=0.05)
    assert rows["forest"]["GRIT: clear in"] == "2 of 3"
    assert rows["GRIT"]["GRIT minus this"] is None
    assert any("few epochs" in remark for remark in table.remarks)


def test_one_seed_has_no_p():
    assert paired_p([0.1]) != paired_p([0.1])
    assert paired_p([0.1, 0.1]) != paired_p([0.1, 0.1])


def test_coverage():
    found = {
        ("esol", "random"): [made_up({"grit": 0.5}, coverage={"grit": share}) for share in (0.8, 0.96)],
        ("esol", "scaffold"): [made_up({"grit": 0.5}, coverage={"grit": share}) for share in (0.8, 0.84, None)],
    }
    table = coverage_table(found, {"esol": "as it comes"}, "paper")
    rows = {row["split"]: row for row in table.tree()["rows"]}
    assert rows["random"]["mean coverage"] == pytest.approx(0.88)
    assert (rows["random"]["least"], rows["random"]["most"], rows["random"]["fits"]) == (0.8, 0.96, 2)
    assert rows["random"]["mean in 86% to 94%"] is True
    assert rows["scaffold"]["mean coverage"] == pytest.approx(0.82)
    assert rows["scaffold"]["fits"] == 2  # a fit with too few validation molecules has no intervals
    assert rows["scaffold"]["mean in 86% to 94%"] is False
