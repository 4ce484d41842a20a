"""``grit runs``: what is in the folders, whatever state they are in."""

import errno
import json
import os
import shutil

import pytest

from grit.training.run_folder import RunFolder
from grit.training.train import RunOptions, train
from tests.training.small import small_recipe, small_store

CPU = RunOptions(device="cpu", checkpoint_seconds=0)


class Stopped(Exception):
    pass


def stop_in_the_third_epoch(event):
    if event.epoch == 2:
        raise Stopped


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two finished runs, one that was stopped, and one that was stopped before it learned anything."""
    path, store = tmp_path_factory.mktemp("list") / "runs", small_store()
    train(small_recipe("train.lr=1e-5"), path / "a", store=store, options=CPU)
    train(small_recipe("train.epochs=1"), path / "deep" / "b", store=store, options=CPU)
    with pytest.raises(Stopped):
        train(small_recipe(), path / "stopped", store=store, options=CPU, watch=stop_in_the_third_epoch)
    shutil.copytree(path / "stopped", path / "begun", ignore=shutil.ignore_patterns("*.safetensors", "metrics.jsonl"))
    return path


@pytest.fixture
def runs(made, tmp_path, monkeypatch):
    """A copy that a test may damage."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return shutil.copytree(made, tmp_path / "runs")


def listed(command, *arguments):
    return {run["path"]: run for run in json.loads(command("runs", *arguments, "--json"))}


def test_all_states_and_figures(runs, command):
    found = listed(command)
    assert {path: run["state"] for path, run in found.items()} == {
        "runs/a": "finished",
        "runs/begun": "begun",
        "runs/deep/b": "finished",
        "runs/stopped": "trained",
    }
    result = RunFolder(runs / "a").result()
    assert (
        found["runs/a"]
        | {
            "dataset": "small",
            "model": "GRIT (2 layers of 8)",
            "metric": "mae",
            "val": result["val"]["mae"],
            "test": result["test"]["mae"],
            "best_epoch": result["best_epoch"] + 1,
            "epochs": 3,
            "num_parameters": result["num_parameters"],
        }
        == found["runs/a"]
    )
    history = RunFolder(runs / "stopped").history()
    best = min(history, key=lambda line: line["val"]["mae"])
    assert (found["runs/stopped"]["val"], found["runs/stopped"]["best_epoch"]) == (
        best["val"]["mae"],
        best["epoch"] + 1,
    )
    assert found["runs/stopped"]["test"] is None
    table = command("runs").splitlines()
    [line] = [line for line in table if line.strip().startswith("runs/a ")]
    assert f"{result['test']['mae']:.4f}" in line
    assert f"{result['num_parameters']:,}" in line
    assert "Next: grit compare runs/a runs/deep/b" in table[-1]


def test_a_run_that_a_process_holds_is_running(runs, command):
    with RunFolder(runs / "stopped").held():
        assert listed(command)["runs/stopped"]["state"] == "running"
    assert listed(command)["runs/stopped"]["state"] == "trained"


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda run: (run / "config.yaml").write_text("model: ["), "not valid YAML"),
        (lambda run: (run / "config.yaml").unlink(), "no config.yaml"),
        (lambda run: (run / "data.json").write_text("{}"), "data.json"),
        (lambda run: (run / "result.json").write_text("[1]"), "result.json"),
        (lambda run: (run / "result.json").write_text('{"metric": 3}'), "result.json"),
        (lambda run: (run / "metrics.jsonl").write_text("nonsense\n"), "metrics.jsonl"),
        (lambda run: [(run / "result.json").unlink(), (run / "metrics.jsonl").write_text("[3]\n")], ""),
    ],
)
def test_a_broken_folder_is_listed_with_the_reason_among_the_others(runs, command, damage, reason):
    damage(runs / "a")
    found = listed(command)
    assert found["runs/a"]["state"] == "broken"
    assert reason in found["runs/a"]["reason"]
    assert found["runs/deep/b"]["state"] == "finished"
    assert "runs/a cannot be read: " in command("runs")


def test_a_folder_that_cannot_be_opened_is_listed(runs, command, monkeypatch):
    def refuse(path, real=os.scandir):  # root may read everything, so permissions alone show nothing
        if str(path).endswith("deep"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", refuse)
    monkeypatch.setattr(
        os, "listdir", lambda path, real=os.listdir: refuse(path) if "deep" in str(path) else real(path)
    )
    found = listed(command)
    assert (found["runs/deep"]["state"], found["runs/a"]["state"]) == ("broken", "finished")
    assert "Permission denied" in found["runs/deep"]["reason"]


def test_order(runs, command):
    values = {path: run["val"] for path, run in listed(command).items() if run["val"] is not None}
    by_metric = list(listed(command, "--sort", "metric"))
    assert by_metric == [*sorted(values, key=values.get), "runs/begun"]
    (runs / "deep" / "b" / "metrics.jsonl").touch()
    assert next(iter(listed(command, "--sort", "time"))) == "runs/deep/b"
    assert "there are name, metric, time" in command("runs", "--sort", "size", code=2)


def test_folders_are_named_or_the_default(runs, command, monkeypatch, tmp_path):
    assert list(listed(command, "runs/deep", "runs/a", "runs")) == [
        "runs/a",
        "runs/begun",
        "runs/deep/b",
        "runs/stopped",
    ]
    assert list(listed(command, runs / "deep")) == [str(runs / "deep" / "b")]
    (tmp_path / "empty").mkdir()
    assert "no runs here" in command("runs", "empty")
    monkeypatch.chdir(tmp_path / "empty")
    assert "there is no folder 'runs'" in command("runs", code=2)
