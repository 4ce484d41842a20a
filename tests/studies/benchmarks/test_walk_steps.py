import json

import grit
from grit.studies import STUDIES, Workbench
from grit.studies.benchmarks.walk_steps import PUBLISHED
from grit.studies.benchmarks.zinc_variants import Variant, variants_table
from grit.studies.runs import Outcome, StudySize
from grit.studies.stand_ins import stand_in_store
from grit.studies.study_data import StudyData


def test_smoke(tmp_path):
    bench = Workbench(tmp_path / "study", "smoke", root=tmp_path / "data")
    STUDIES["walk-steps"].run(bench)
    table = json.loads((bench.folder / "results.json").read_text())
    assert [row["row"] for row in table["rows"]] == [f"K = {k}" for k in (2, 7, 14, 18, 21, 24, 42)]
    assert [row["paper, MAE"] for row in table["rows"]] == list(PUBLISHED.values())
    assert [row["ours, change"] is None for row in table["rows"]] == [k == 21 for k in PUBLISHED]
    # Two maps of K channels, to nodes and to pairs of width 16.
    sizes = {k: row["parameters"] for k, row in zip(PUBLISHED, table["rows"], strict=True)}
    assert {k: sizes[k] - sizes[2] for k in PUBLISHED} == {k: 2 * 16 * (k - 2) for k in PUBLISHED}
    assert "NOT COMPARABLE" in " ".join(table["remarks"])


def table(budget, is_benchmark, scale=None, paper="0.147 ± 0.006"):
    variants = {k: Variant(f"K = {k}", "zinc", (), mae) for k, mae in (("2", paper), ("21", "0.059 ± 0.002"))}
    outcomes = {"2": Outcome([0.15, 0.16], 1, 1.0), "21": Outcome([0.06, 0.06], 1, 1.0)}
    data = StudyData(stand_in_store("zinc", (2, 1, 1)), is_benchmark, "")
    recipes = dict.fromkeys(variants, grit.load_recipe("zinc"))
    return variants_table(budget, "K", variants, "21", recipes, outcomes, data, scale or StudySize()).tree()


def test_the_published_experiment_stands_beside_the_paper():
    rows = table("paper", True)["rows"]
    assert [row["ours - paper"] for row in rows] == ["+0.0080", "+0.0010"]
    assert rows[0]["ours, change"] == "+0.0950"
    assert "omparable" not in " ".join(table("paper", True)["remarks"])


def test_a_row_that_the_paper_does_not_have():
    rows = table("paper", True, paper=None)["rows"]
    assert [row["paper, MAE"] for row in rows] == [None, "0.059 ± 0.002"]
    assert [row["ours - paper"] for row in rows] == [None, "+0.0010"]


def test_a_part_of_the_data_does_not():
    told = table("paper", False)
    assert "ours - paper" not in told["rows"][0]
    assert "not comparable with the paper" in " ".join(told["remarks"])
