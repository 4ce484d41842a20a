"""The race itself, on stand-ins, with steps that are tried in this process."""

import json

import pytest

import grit
from grit.errors import Interrupted
from grit.studies import STUDIES, Workbench, runs
from grit.studies.race import probe as probing
from grit.studies.race import race
from grit.training import loop


@pytest.fixture(autouse=True)
def tried(monkeypatch):
    """The names of the models whose steps were tried."""
    names = []

    def here(request):
        names.append(request.recipe["model"]["name"])
        return probing.measure(request)

    monkeypatch.setattr(race, "measure_apart", here)
    return names


def begin(tmp_path, **options):
    said = []
    free = STUDIES["race"].free
    bench = Workbench(
        tmp_path / "study", "smoke", tmp_path / "data", say=said.append, options={"device": "cpu", **options}, free=free
    )
    STUDIES["race"].run(bench)
    table = json.loads((bench.folder / "race.json").read_text())
    return {row["recipe"]: row for row in table["rows"]}, table, said


def ours(row):
    return row["ours, test mae ↓"]


def test_smoke(tmp_path):
    rows, table, _ = begin(tmp_path, only="zinc,zinc-gps", seeds="0,1")
    assert set(rows) == {"zinc", "zinc-gps"}
    assert (rows["zinc"]["system"], rows["zinc-gps"]["system"]) == ("GRIT", "GPS")
    assert (rows["zinc"]["published"], rows["zinc-gps"]["published"]) == ("0.059 ± 0.002", "0.070 ± 0.004")
    for name, row in rows.items():
        results = [json.loads((tmp_path / f"study/runs/{name}/seed{seed}/result.json").read_text()) for seed in (0, 1)]
        mean = sum(result["test"]["mae"] for result in results) / 2
        assert float(ours(row).split()[0]) == pytest.approx(mean, abs=1e-4)
        assert "±" in ours(row)
        assert row["parameters"] == results[0]["num_parameters"]
        assert row["minutes"] == pytest.approx(sum(result["seconds"] for result in results) / 120, abs=0.01)
        assert row["ms per step"] > row["ms of it for the batch"] > 0
        assert (row["epochs"], row["runs"], row["remark"]) == ("1", 2, None)
    assert [ours(row) for row in rows.values()] == sorted(map(ours, rows.values()))
    assert table["title"] == "Race on stand-in for zinc, 1 epoch each"
    remarks = " ".join(table["remarks"])
    for text in ("40 / 10 / 10 graphs", "seeds 0, 1", "NOT COMPARABLE", "has not been built", "at most two layers"):
        assert text in remarks
    assert b"<svg" in (tmp_path / "study/race.svg").read_bytes()


def test_interrupted_it_goes_on(tmp_path, tried, monkeypatch):
    train = runs.train

    def stopped(recipe, *arguments, **options):
        if recipe.model.name == "gps":
            raise Interrupted("interrupted in epoch 1; everything is saved.")
        return train(recipe, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(runs, "train", stopped)
        with pytest.raises(Interrupted, match="zinc-gps, seed 0: interrupted .* The same command goes on"):
            begin(tmp_path, only="zinc,zinc-gps")
    assert (tmp_path / "study/runs/zinc/seed0/result.json").exists()
    rows, _, said = begin(tmp_path, only="zinc,zinc-gps")
    assert any("zinc, seed 0: the run" in line and "was finished already" in line for line in said)
    assert set(rows) == {"zinc", "zinc-gps"}
    assert sorted(tried) == ["gps", "grit"]


def test_more_systems_and_seeds_in_the_same_folder(tmp_path, tried):
    begin(tmp_path, only="zinc")
    rows, _, _ = begin(tmp_path, only="zinc,zinc-gps", seeds="0,1")
    assert [row["runs"] for row in rows.values()] == [2, 2]
    assert sorted(tried) == ["gps", "grit"]
    with pytest.raises(grit.GritError, match="holds this study with other settings"):
        begin(tmp_path, only="zinc", budget="epochs:2")


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (
            RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried\nmore"),
            "RuntimeError: DefaultCPUAllocator",
        ),
        (MemoryError(), "MemoryError"),
        (grit.GritError("the loss became infinite"), "the loss became infinite"),
    ],
)
def test_a_system_that_fails_does_not_lose_the_others(tmp_path, monkeypatch, error, why):
    train = runs.train

    def failing(recipe, *arguments, **options):
        if recipe.model.name == "gps":
            raise error
        return train(recipe, *arguments, **options)

    monkeypatch.setattr(runs, "train", failing)
    rows, _, said = begin(tmp_path, only="zinc,zinc-gps", seeds="0,1")
    assert rows["zinc"]["runs"] == 2
    assert list(rows)[-1] == "zinc-gps"
    assert rows["zinc-gps"]["remark"].startswith(f"FAILED: seed 0: {why}")
    assert ours(rows["zinc-gps"]) is None
    assert rows["zinc-gps"]["ms per step"] > 0
    assert not any(line.startswith("zinc-gps, seed 1") for line in said)  # its second seed is not tried


def test_one_that_failed_is_tried_again_by_the_next_command(tmp_path, monkeypatch):
    def killed(request):
        raise grit.GritError("probably out of memory")

    with monkeypatch.context() as patch:
        patch.setattr(race, "measure_apart", killed)
        with pytest.raises(grit.GritError, match="no system could be trained. zinc: seed 0: probably out of memory"):
            begin(tmp_path, only="zinc")
    rows, _, _ = begin(tmp_path, only="zinc")
    assert rows["zinc"]["runs"] == 1


class Clock:
    """Training takes a time that the test sets, per step; nothing else takes any."""

    def __init__(self, monkeypatch, seconds):
        self.now, step = 0.0, loop.TrainingLoop.step

        def slow(training, batch, ends_step):
            self.now += seconds
            return step(training, batch, ends_step)

        monkeypatch.setattr(loop, "time", self)
        monkeypatch.setattr(loop.TrainingLoop, "step", slow)

    def perf_counter(self):
        return self.now


def timed(monkeypatch, step):
    """Steps that were tried took this long: an epoch of 40 graphs in batches of 8 has five."""
    found = probing.ProbeResult(0.0, 0.0, step, 0.0, (5, 2, 2), None, 1)
    monkeypatch.setattr(race, "measure_apart", lambda request: found)


def test_as_many_epochs_as_fit_the_time(tmp_path, monkeypatch):
    timed(monkeypatch, step=2.0)
    Clock(monkeypatch, seconds=2.0)
    rows, table, _ = begin(tmp_path, only="zinc", budget="time:0.5")
    assert rows["zinc"]["epochs"] == "3"  # of 10 s each
    assert rows["zinc"]["minutes"] == 0.5
    assert table["title"] == "Race on stand-in for zinc, 0.5 minutes each"
    recipe = grit.load_recipe(tmp_path / "study/runs/zinc/seed0/config.yaml")
    assert (recipe.train.epochs, recipe.train.warmup_epochs, recipe.train.max_seconds) == (3, 0, 30.0)


def test_the_clock_ends_a_run_that_is_slower_than_its_steps_were(tmp_path, monkeypatch):
    timed(monkeypatch, step=2.0)
    Clock(monkeypatch, seconds=4.0)
    rows, _, said = begin(tmp_path, only="zinc", budget="time:0.5")
    assert rows["zinc"]["epochs"] == "1.6 of 3"  # eight steps of four seconds pass thirty
    assert any("its time of 30 s is up" in line for line in said)


def test_less_than_an_epoch_is_said(tmp_path, monkeypatch):
    timed(monkeypatch, step=20.0)
    Clock(monkeypatch, seconds=20.0)
    rows, _, _ = begin(tmp_path, only="zinc", budget="time:0.5")
    assert rows["zinc"]["epochs"] == "0.4 of 1"
    assert ours(rows["zinc"]) is not None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": "5"}, r"budget=5: expected budget=epochs:5 .* --budget smoke"),
        ({"budget": "epochs:0"}, "budget=epochs:0: expected"),
        ({"budget": "time:0"}, "budget=time:0: expected"),
        ({"budget": "time:-1"}, "budget=time:-1: expected"),
        ({"seeds": "0,0"}, "seeds=0,0: expected whole numbers with commas between, each once"),
        ({"seeds": "a"}, "seeds=a: expected"),
        ({"only": "zinc-gsp"}, "there is no 'zinc-gsp'; there are zinc, "),
        ({"dataset": "zink"}, "no recipe for the data set 'zink'; there are recipes for .*zinc"),
        ({"epochs": "5"}, "no option 'epochs'; it has dataset, budget, only, seeds, device"),
    ],
)
def test_mistakes_are_known_before_anything_is_done(tmp_path, options, message):
    with pytest.raises(grit.GritError, match=message):
        begin(tmp_path, **options)
    assert not (tmp_path / "study").exists()
