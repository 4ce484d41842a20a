"""``grit sweep``: all combinations, each once, the best first."""

import csv
import json
import shutil

import pytest

from grit.datasets import from_pyg
from grit.training import sweep as sweeps
from grit.training.loop import Interrupted
from grit.training.run_folder import RunFolder
from tests.training.small import SMALL, small_graphs, small_store

FIXED = [each for each in SMALL if "train.lr" not in each and "epochs" not in each]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("sweep") / "store"
    small_store(out=path)
    return path


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    return tmp_path


@pytest.fixture
def write(folder, store):
    def write(**tree):
        fixed = [each for each in [*FIXED, f"dataset={store}"] if each.partition("=")[0] not in tree.get("grid", {})]
        (folder / "mine.yaml").write_text(
            json.dumps({"recipe": "zinc", "overrides": [*fixed, "train.epochs=1"], **tree})
        )

    return write


def lines(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_every_combination_is_trained_once_and_the_best_comes_first(folder, write, command):
    write(grid={"train.lr": [1e-9, 1e-2], "model.num_layers": [1, 2]}, seeds=[0, 1])
    text = command("sweep", "mine.yaml", "--device", "cpu")
    runs = folder / "runs" / "mine"
    names = {f"lr={lr},num_layers={layers}" for lr in ("1e-09", "0.01") for layers in (1, 2)}
    assert {path.name for path in runs.iterdir()} == {*names, "sweep.csv"}
    found = lines(runs / "sweep.csv")
    assert len(found) == 8
    for line in found:
        run = RunFolder(line["run"])
        recipe, result = run.recipe(), run.result()
        assert (recipe.train.lr, recipe.model.num_layers) == (float(line["train.lr"]), int(line["model.num_layers"]))
        assert (recipe.train.seed, recipe.train.epochs) == (int(line["seed"]), 1)
        assert float(line["val"]) == result["val"]["mae"]
        assert float(line["test"]) == result["test"]["mae"]
    means = [sum(float(line["val"]) for line in found[place : place + 2]) / 2 for place in range(0, 8, 2)]
    assert means == sorted(means)
    table = [line.split() for line in text.splitlines()]
    best = found[0]
    [first] = [n for n, line in enumerate(table) if line[:2] == ["train.lr", "model.num_layers"]]
    assert [float(table[first + 1][0]), int(table[first + 1][1])] == [
        float(best["train.lr"]),
        int(best["model.num_layers"]),
    ]
    assert f"{means[0]:.4f}" in table[first + 1]
    assert "±" in table[first + 1]
    again = json.loads(command("sweep", "mine.yaml", "--device", "cpu", "--json"))
    assert [each["val"]["mean"] for each in again] == pytest.approx(means)


def test_one_run_has_no_deviation(folder, write, command):
    write(grid={"train.lr": [1e-2]}, seeds=[0])
    assert "±" not in command("sweep", "mine.yaml", "--device", "cpu")


def test_an_empty_split_is_found_before_the_first_run(folder, write, command):
    from_pyg(small_graphs(4), splits={"train": range(4), "val": []}, out=folder / "stores" / "noval")
    write(grid={"dataset": ["stores/noval"]})
    assert "the split 'val' is empty" in command("sweep", "mine.yaml", "--device", "cpu", code=2)
    assert not (folder / "runs").exists()


def test_a_sweep_goes_on_where_it_was_interrupted(folder, write, command, monkeypatch):
    write(grid={"train.lr": [1e-3, 1e-2, 3e-2]})
    real, seen = sweeps.run_sweep, []

    def interrupted(runs, place, stores, train):
        def stops(run, *rest):
            if len(seen) == 1:
                raise Interrupted("interrupted in epoch 1; everything is saved.")
            seen.append(run.combination)
            return train(run, *rest)

        return real(runs, place, stores, stops)

    monkeypatch.setattr("grit.cli.print_sweep.run_sweep", interrupted)
    assert "Go on with the same command" in command("sweep", "mine.yaml", "--device", "cpu", code=130)
    assert len(lines(folder / "runs" / "mine" / "sweep.csv")) == 1
    result = folder / "runs" / "mine" / "lr=0.001" / "seed0" / "result.json"
    before = result.stat().st_mtime_ns
    monkeypatch.setattr("grit.cli.print_sweep.run_sweep", real)
    states = [run["state"] for run in json.loads(command("sweep", "mine.yaml", "--dry-run", "--json"))]
    assert states == ["finished", "new", "new"]
    command("sweep", "mine.yaml", "--device", "cpu")
    assert result.stat().st_mtime_ns == before
    assert len(lines(folder / "runs" / "mine" / "sweep.csv")) == 3


def test_a_run_that_fails_does_not_stop_the_others(folder, write, command):
    write(grid={"train.lr": [1e38, 1e-3]}, overrides={**fixed_tree(write), "train.clip_norm": None, "train.epochs": 2})
    told = command("sweep", "mine.yaml", "--device", "cpu", code=2)
    assert "1 of 2 runs failed; the first: lr=1e+38/seed0: the loss became infinite" in told
    first, second = lines(folder / "runs" / "mine" / "sweep.csv")
    assert (first["train.lr"], first["error"]) == ("0.001", "")
    assert "the loss became infinite" in second["error"]


def fixed_tree(write):
    write()
    with open("mine.yaml") as file:
        pairs = [each.split("=", 1) for each in json.load(file)["overrides"]]
    return {key: value if key == "dataset" else json.loads(value) for key, value in pairs}


def test_the_list_of_runs_trains_nothing(folder, write, command):
    write(grid={"train.lr": [1e-3, 1e-2]}, seeds=[3, 4])
    text = command("sweep", "mine.yaml", "--dry-run", "--run", "elsewhere")
    assert [line.split()[0] for line in text.splitlines()[:4]] == [
        f"elsewhere/lr={lr}/seed{seed}" for lr in ("0.001", "0.01") for seed in (3, 4)
    ]
    assert "4 runs, 4 to do" in text
    assert not (folder / "elsewhere").exists()
    assert not (folder / "runs").exists()


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"grid": {"train.lr": [1e-3, -1.0]}}, "lr=-1.0: recipe 'zinc':"),
        ({"grid": {"train.rate": [1]}}, "train.rate: unknown key"),
        ({"grid": {"model.num_heads": [2, 3]}}, "num_heads=3"),
        ({"grid": {"model.pooling": ["sum", "none"]}}, "pooling=none"),
        ({"grid": {"dataset": ["stores/absent"]}}, "there is no store at"),
        ({"grid": {"train.lr": 1e-3}}, "train.lr: expected a list of values"),
        ({"grid": {"train.lr": []}}, "train.lr: expected a list of values"),
        ({"grid": {"train.lr": [1e-3, 1e-3]}}, "the value 0.001 stands twice"),
        ({"grid": {"train.lr": [1, 1.0]}}, "are the same run"),
        ({"grid": {"train.epochs": [1]}}, "train.epochs stands in overrides and in grid"),
        ({"grid": {"train.seed": [1]}, "seeds": [0]}, "keep seeds"),
        ({"grid": {f"a.k{n}": list(range(10)) for n in range(5)}}, "100,000 runs"),
        ({"grid": ["train.lr"]}, "grid: expected keys with lists of values"),
        ({"seeds": [0, 0]}, "seeds: expected a list of different whole numbers"),
        ({"seeds": 3}, "seeds: expected a list of different whole numbers"),
        ({"recipe": "zonc"}, "unknown recipe 'zonc'"),
        ({"recipe": None}, "recipe: expected the name"),
        ({"overrides": 3}, "overrides: expected keys and values"),
        ({"plugins": "mine.py"}, "plugins must be a list"),
        ({"plugins": ["absent.py"]}, "there is no plugin"),
        ({"epochs": 3}, "unknown key 'epochs'. Known here: recipe, overrides"),
    ],
)
def test_mistakes_are_found_before_the_first_run(folder, write, command, tree, message):
    write(**tree)
    assert message in command("sweep", "mine.yaml", "--device", "cpu", code=2)
    assert not (folder / "runs").exists()


def test_other_mistakes(folder, write, command):
    (folder / "mine.yaml").write_text("[1, 2]")
    assert "must be a mapping with the keys recipe" in command("sweep", "mine.yaml", code=2)
    assert "cannot read the sweep 'absent.yaml'" in command("sweep", "absent.yaml", code=2)
    write()
    assert "no logger 'banana'" in command("sweep", "mine.yaml", "--log", "banana", code=2)
    assert "cannot use the device 'banana'" in command("sweep", "mine.yaml", "--device", "banana", code=2)
    assert not (folder / "runs").exists()


def test_a_changed_file_does_not_mix_with_what_was_trained(folder, write, command, store):
    write(grid={"train.lr": [1e-3]})
    command("sweep", "mine.yaml", "--device", "cpu", "--log", "csv")
    assert (folder / "runs" / "mine" / "lr=0.001" / "seed0" / "metrics.csv").exists()
    write(grid={"train.lr": [1e-4, 1e-3]}, overrides=[*FIXED, f"dataset={store}", "train.epochs=2"])
    assert "train.epochs was 1, is now 2" in command("sweep", "mine.yaml", "--device", "cpu", code=2)
    assert not (folder / "runs" / "mine" / "lr=0.0001").exists()
    run = folder / "runs" / "mine" / "lr=0.001" / "seed0"
    assert "is a run folder" in command("sweep", "mine.yaml", "--run", run, code=2)


def test_plugins_and_recipes_are_found_beside_the_file(folder, store, command):
    (folder / "kept").mkdir()
    (folder / "kept" / "mine.py").write_text(
        "import grit\nfrom grit.learning.schedules import SCHEDULES\ngrit.SCHEDULES['mine_of_sweep'] = SCHEDULES['cosine']\n"
    )
    (folder / "kept" / "own.yaml").write_text(f"base: zinc\ndataset: {store}\ntrain:\n  epochs: 1\n")
    tree = {
        "recipe": "own.yaml",
        "plugins": ["mine.py"],
        "overrides": FIXED,
        "grid": {"train.schedule": ["mine_of_sweep", "cosine"]},
    }
    (folder / "kept" / "both.yaml").write_text(json.dumps(tree))
    found = json.loads(command("sweep", "kept/both.yaml", "--dry-run", "--json"))
    assert [run["values"]["train.schedule"] for run in found] == ["mine_of_sweep", "cosine"]


def test_folder_names_are_short_and_apart(folder, write, command, store):
    paths = [folder / ("a" * 90) / f"{'x' * 60}{number}" for number in (1, 2)]
    for path in paths:
        shutil.copytree(store, path)
    write(grid={"dataset": [str(path) for path in paths]})
    names = [run["run"] for run in json.loads(command("sweep", "mine.yaml", "--dry-run", "--json"))]
    assert len(set(names)) == 2
    assert all(len(name.split("/")[2]) < 140 for name in names)
