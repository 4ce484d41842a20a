import json

import pytest

import grit
from grit.errors import Interrupted
from grit.studies import Workbench
from grit.studies.runs import SMOKE, StudySize, TrainingPlan, chosen, mean_and_sd, outcome_of, train_all
from grit.studies.study_data import open_data
from grit.training.seeds import SeedResults

TINY = SMOKE._replace(sizes=(16, 4, 4), overrides=(*SMOKE.overrides[:-1], "train.epochs=3"))


def plans(bench, scale=TINY):
    data = open_data(bench, "zinc", scale.sizes)
    return {
        "base": TrainingPlan(scale.recipe("zinc"), data, scale.seeds),
        "rwse": TrainingPlan(scale.recipe("zinc-rwse"), data, scale.seeds),
    }


def workbench(folder, tmp_path, **options):
    said = []
    return Workbench(folder, "smoke", root=tmp_path / "data", say=said.append, **options), said


def test_interrupted_and_gone_on_with_is_the_same(tmp_path):
    bench, _ = workbench(tmp_path / "whole", tmp_path)
    whole = train_all(bench, plans(bench))
    assert [len(outcome.values) for outcome in whole.values()] == [2, 2]

    def stopping(line):
        if line.startswith("rwse, seed 0: epoch 1 of 3"):
            raise Interrupted("stopped")

    bench = Workbench(tmp_path / "parts", "smoke", root=tmp_path / "data", say=stopping)
    with pytest.raises(Interrupted, match="rwse, seed 0: stopped The same command goes on"):
        train_all(bench, plans(bench))
    assert (bench.folder / "runs/base/seed0/result.json").exists()
    assert (bench.folder / "runs/rwse/seed0/config.yaml").exists()
    assert not (bench.folder / "runs/rwse/seed0/result.json").exists()
    assert not (bench.folder / "runs/base/seed1").exists()

    bench, said = workbench(tmp_path / "parts", tmp_path)
    again = train_all(bench, plans(bench))
    assert {name: outcome.values for name, outcome in again.items()} == {
        name: outcome.values for name, outcome in whole.items()
    }
    assert any("rwse, seed 0: resumed at epoch" in line for line in said)


def test_seeds_differ_and_are_in_the_run_folders(tmp_path):
    bench, said = workbench(tmp_path / "study", tmp_path)
    outcome = train_all(bench, {"base": plans(bench)["base"]})["base"]
    assert outcome.values[0] != outcome.values[1]
    results = [json.loads((bench.folder / f"runs/base/seed{seed}/result.json").read_text()) for seed in (0, 1)]
    assert [result["seed"] for result in results] == [0, 1]
    assert [result["test"]["mae"] for result in results] == outcome.values
    assert outcome.row == SeedResults(pytest.approx(sum(outcome.values) / 2), pytest.approx(outcome.row.sd), 2)
    assert outcome.num_parameters == results[0]["num_parameters"]
    assert sum("epoch 3 of 3" in line for line in said) == 2


def test_scales_shorten_the_warm_up():
    recipe = StudySize(overrides=("train.epochs=200", "model.num_layers=3")).recipe("zinc", "encoding.walk_steps=5")
    assert (recipe.train.epochs, recipe.train.warmup_epochs) == (200, 5)
    assert (recipe.model.num_layers, recipe.encoding.walk_steps) == (3, 5)
    assert StudySize().recipe("zinc") == grit.load_recipe("zinc")


def test_accuracies_are_in_percent():
    result = {"metric": "accuracy-sbm", "test": {"accuracy-sbm": 0.5}, "num_parameters": 1, "seconds": 2.0}
    assert outcome_of([result, result]) == ([50.0, 50.0], 1, 4.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"onyl": "zinc"}, "no option 'onyl'; it has only, device"),
        ({"only": "zinc,zonc"}, "there is no 'zonc'; there are zinc, mnist"),
        ({"only": ""}, "there is no ''"),
    ],
)
def test_bad_options(tmp_path, options, message):
    with pytest.raises(grit.GritError, match=message):
        chosen(Workbench(tmp_path, options=options), ["zinc", "mnist"])


def test_some_rows(tmp_path):
    assert chosen(Workbench(tmp_path, options={"only": "b,a"}), ["a", "c", "b"]) == ["a", "b"]


def test_device_is_handed_on(tmp_path):
    bench, _ = workbench(tmp_path / "study", tmp_path, options={"device": "nowhere"})
    with pytest.raises(grit.GritError, match="cannot use the device 'nowhere'"):
        train_all(bench, plans(bench))


def test_means_in_words():
    assert mean_and_sd(SeedResults(0.059, 0.002, 4), 3) == "0.059 ± 0.002"
    assert mean_and_sd(SeedResults(0.0859, 0.0, 1)) == "0.0859"
