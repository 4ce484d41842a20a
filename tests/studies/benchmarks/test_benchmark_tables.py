import json

import pytest

import grit
from grit.studies import STUDIES, Workbench
from grit.studies.benchmarks.benchmark_table import published_table, results_table
from grit.studies.benchmarks.published import LRGB, PCQM4MV2, TABLE_1
from grit.studies.runs import Outcome, StudySize, TrainingPlan
from grit.studies.stand_ins import stand_in_store
from grit.studies.study_data import StudyData


def read(bench, name):
    return json.loads((bench.folder / f"{name}.json").read_text())


@pytest.mark.parametrize(
    ("name", "data", "systems"),
    [
        ("table1", ["ZINC", "MNIST", "CIFAR10", "PATTERN", "CLUSTER"], 19),
        ("lrgb", ["Peptides-func", "Peptides-struct"], 9),
        ("zinc-full", ["ZINC-full"], 12),
        ("pcqm4mv2", ["PCQM4Mv2"], 11),
    ],
)
def test_smoke(tmp_path, name, data, systems):
    bench = Workbench(tmp_path / "study", "smoke", root=tmp_path / "data")
    STUDIES[name].run(bench)
    results = read(bench, "results")
    assert [row["data"].split(",")[0] for row in results["rows"]] == data
    assert all(row["runs"] == 2 and row["train / val / test"] == "40 / 10 / 10" for row in results["rows"])
    assert not {"difference", "paper", "p"} & set(results["rows"][0])
    assert "budget smoke" in results["title"]
    remarks = " ".join(results["remarks"])
    assert "NOT COMPARABLE WITH THE PAPER" in remarks
    assert remarks.count("has not been built; in its place:") == len(data)
    published = read(bench, "published")
    assert len(published["rows"]) == systems
    assert "this run" not in json.dumps(published)
    assert all(row["source"].startswith("the paper, Table") for row in published["rows"])


def test_only_some_data_sets(tmp_path):
    bench = Workbench(tmp_path / "study", "smoke", root=tmp_path / "data", options={"only": "zinc"})
    STUDIES["table1"].run(bench)
    assert len(read(bench, "results")["rows"]) == 1


@pytest.mark.parametrize("budget", ["small", "paper"])
def test_a_missing_data_set_is_known_before_anything_is_trained(tmp_path, budget):
    bench = Workbench(tmp_path / "study", budget, root=tmp_path / "data", options={"only": "pattern,mnist"})
    with pytest.raises(grit.GritError, match="grit datasets build mnist"):
        STUDIES["table1"].run(bench)
    assert not (bench.folder / "runs").exists()


def plan(name, is_benchmark, note=""):
    return TrainingPlan(
        grit.load_recipe(name), StudyData(stand_in_store(name, (2, 1, 1)), is_benchmark, note), (0, 1, 2, 3)
    )


def test_the_published_experiment_stands_beside_the_paper():
    columns = [column for column in TABLE_1.columns if column.recipe in ("zinc", "pattern")]
    plans = {"zinc": plan("zinc", True), "pattern": plan("pattern", False, "pattern is a part of it")}
    outcomes = {
        "zinc": Outcome([0.058, 0.060, 0.059, 0.061], 473_473, 1.0),
        "pattern": Outcome([80.0, 81.0, 82.0, 83.0], 477_953, 1.0),
    }
    table = results_table(
        "paper", TABLE_1, columns, plans, outcomes, {"zinc": StudySize(), "pattern": StudySize()}
    ).tree()
    zinc, pattern = table["rows"]
    assert zinc["ours, test"] == "0.0595 ± 0.0013"
    assert (zinc["paper"], zinc["difference"]) == ("0.059 ± 0.002", "+0.0005")
    assert zinc["best other system"] == "GPS 0.070 ± 0.004"
    assert zinc["p"] < 1e-3
    assert zinc["significant"]
    assert pattern["paper"] is pattern["difference"] is pattern["p"] is None
    remarks = " ".join(table["remarks"])
    assert "pattern is a part of it." in remarks
    assert "not trained on the whole data set" in remarks
    assert "NOT COMPARABLE" not in remarks
    ours = published_table(TABLE_1, columns[:1], outcomes).tree()["rows"][-1]
    assert ours["system"] == "GRIT (this run)"
    assert ours["ZINC, MAE ↓"] == "0.0595 ± 0.0013"
    assert ours["PATTERN, accuracy ↑"] is None


def test_a_worse_result_is_not_significant():
    outcomes = {"peptides-func": Outcome([0.60, 0.61, 0.62, 0.63], 1, 1.0)}
    plans = {"peptides-func": plan("peptides-func", True)}
    (row,) = results_table("paper", LRGB, LRGB.columns[:1], plans, outcomes, {"peptides-func": StudySize()}).tree()[
        "rows"
    ]
    assert row["p"] > 0.9
    assert row["significant"] is False


def test_single_runs_have_no_test():
    outcomes = {"pcqm4mv2": Outcome([0.0859], 11_832_321, 1.0)}
    plans = {"pcqm4mv2": plan("pcqm4mv2", True)}
    (row,) = results_table("paper", PCQM4MV2, PCQM4MV2.columns, plans, outcomes, {"pcqm4mv2": StudySize()}).tree()[
        "rows"
    ]
    assert (row["paper"], row["difference"], row["p"], row["significant"]) == ("0.0859", "+0.0000", None, None)


def test_the_paper_ran_pcqm4mv2_once():
    from grit.studies.benchmarks.table4 import SCALES

    assert SCALES["pcqm4mv2"]["paper"] == StudySize(seeds=(0,))


def test_stars_are_the_papers():
    rows = {row["system"]: row for row in published_table(TABLE_1, [], {}).tree()["rows"]}
    assert rows["GRIT (paper)"]["ZINC, MAE ↓"] == "0.059 ± 0.002 *"
    assert rows["GRIT (paper)"]["MNIST, accuracy ↑"] == "98.108 ± 0.111"
