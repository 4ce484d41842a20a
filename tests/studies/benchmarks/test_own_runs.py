import json

import pytest

import grit
from grit.studies import STUDIES, Workbench
from grit.studies.benchmarks.benchmark_table import published_table
from grit.studies.benchmarks.own_runs import OwnRun, read_own_runs
from grit.studies.benchmarks.published import TABLE_1
from grit.training.train import RunOptions, train
from tests.training.small import small_store

SMALL = ("model.num_layers=1", "train.batch_size=16", "train.epochs=2")
CPU = RunOptions(device="cpu")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What a race leaves: two seeds of GPS, one of GRIT, one that was not finished."""
    folder = tmp_path_factory.mktemp("race")
    store = small_store()
    for recipe, seed in (("zinc-gps", 0), ("zinc-gps", 1), ("zinc", 0)):
        chosen = grit.load_recipe(recipe, *SMALL, f"train.seed={seed}")
        train(chosen, folder / "runs" / recipe / f"seed{seed}", store=store, options=CPU)
    (folder / "runs/zinc-spd/seed0").mkdir(parents=True)
    (folder / "runs/notes").mkdir()
    return folder


def test_runs_are_read_with_their_budget(folder):
    found = read_own_runs([str(folder)])
    assert set(found) == {("zinc", "GPS"), ("zinc", "GRIT")}
    values = [
        json.loads((folder / f"runs/zinc-gps/seed{seed}/result.json").read_text())["test"]["mae"] for seed in (0, 1)
    ]
    gps = found["zinc", "GPS"]
    assert float(gps.result.split()[0]) == pytest.approx(sum(values) / 2, abs=1e-4)
    assert gps.budget == "2 epochs, 50 training graphs, a changed model, 2 runs"
    assert found["zinc", "GRIT"].budget.endswith("1 run")


def test_they_stand_beside_the_copied_numbers(folder):
    table = published_table(TABLE_1, [], {}, read_own_runs([str(folder)])).tree()
    rows = {row["system"]: row for row in table["rows"]}
    assert rows["GPS"]["ZINC, MAE ↓"] == "0.070 ± 0.004"
    assert rows["GPS"]["run here: ZINC"].endswith("(2 epochs, 50 training graphs, a changed model, 2 runs)")
    assert rows["GRIT (paper)"]["run here: ZINC"] is not None
    assert rows["SAN"]["run here: ZINC"] is None
    assert "run here: MNIST" not in rows["GPS"]
    assert any("Only runs as long as published" in remark for remark in table["remarks"])


def test_an_approximation_says_so():
    own = {("zinc", "SAN"): OwnRun("0.2000", "1000 epochs", True)}
    table = published_table(TABLE_1, [], {}, own).tree()
    (san,) = [row for row in table["rows"] if row["system"] == "SAN"]
    assert san["run here: ZINC"] == "≈ 0.2000 (1000 epochs)"
    assert any(remark.startswith("≈: not exactly") for remark in table["remarks"])


def test_a_folder_without_runs(tmp_path):
    with pytest.raises(grit.GritError, match="there are no runs in it; expected the folder of `grit reproduce race`"):
        read_own_runs([str(tmp_path)])


def test_the_study_takes_the_option(folder, tmp_path):
    def run(**options):
        bench = Workbench(
            tmp_path / "study",
            "smoke",
            root=tmp_path / "data",
            options={"only": "zinc", **options},
            free=STUDIES["table1"].free,
        )
        STUDIES["table1"].run(bench)
        return json.loads((bench.folder / "published.json").read_text())["rows"][0]

    assert "run here: ZINC" not in run()
    assert "run here: ZINC" in run(ours=str(folder))  # in the same folder, without training again
