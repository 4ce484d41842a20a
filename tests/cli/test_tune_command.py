"""``grit tune``: what a user sees, from the table to the recipe that ``grit fit`` takes."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("rdkit")
pytest.importorskip("optuna")

SMALL = ("model.num_layers=1", "model.hidden_dim=8", "model.num_heads=2", "encoding.walk_steps=3")
LONG = ("tune", "mine.csv", "--target", "weight", "--preset", "fast", "--split", "random", "--device", "cpu", *SMALL)
TUNE = (*LONG, "--epochs", "2")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    smiles = ["C" * carbons + end for carbons in range(1, 13) for end in ("O", "N", "Cl")]
    rows = [f"{each},{len(each) + 0.5}" for each in smiles]
    (tmp_path / "mine.csv").write_text("\n".join(["smiles,weight", *rows]) + "\n")
    return tmp_path


def test_from_a_table_to_a_recipe_to_a_predictor(folder, command):
    told = command(*TUNE, "--trials", 3, "--seed", 7)
    assert "The test molecules are not looked at." in told
    assert "trial 3 of 3: val mae" in told
    assert re.search(r"^ *train.lr +[\d.e-]+ +[\d.e-]+ +[\d.e-]+", told, re.M)
    assert "3 trials (0 given up early, 0 failed)" in told
    assert "Which key mattered cannot be told from so few trials" in told
    [last] = [line for line in told.splitlines() if line.startswith("Next: ")]
    assert last == (
        "Next: grit fit mine.csv --target weight --split random --preset runs/mine-tune/recipe.yaml --seed 7"
    )
    command(*last.removeprefix("Next: grit ").split(), "--device", "cpu", "--no-forest")
    with (folder / "runs/mine-tune/trials.csv").open(newline="") as file:
        best = min(csv.DictReader(file), key=lambda row: float(row["val mae"]))
    # Same table, split, seed and values: the fit is the trial, and is tested.
    result = json.loads((folder / "runs/mine/model/result.json").read_text())
    assert result["val"]["mae"] == pytest.approx(float(best["val mae"]), rel=1e-6)
    assert "mae" in result["test"]


def test_for_programs(folder, command):
    (folder / "space.yaml").write_text("train.lr: {low: 1e-4, high: 1e-2, log: true}\n")
    found = json.loads(command(*TUNE, "--trials", 2, "--space", "space.yaml", "--json"))
    assert [trial["number"] for trial in found["trials"]] == [1, 2]
    assert found["best"]["val"] == min(trial["val"] for trial in found["trials"])
    assert set(found["best"]["values"]) == {"train.lr"}
    assert found["recipe"] == "runs/mine-tune/recipe.yaml"
    assert "holds 2 trials already. Go on with them by --resume" in command(*TUNE, code=2)


def test_mistakes(folder, command):
    (folder / "space.yaml").write_text("train.rate: [1, 2]\n")
    said = command(*TUNE, "--space", "space.yaml", code=2)
    assert "the space: " in said
    assert "train.rate: unknown key" in said
    assert "unknown preset 'huge'" in command("tune", "mine.csv", "--target", "weight", "--preset", "huge", code=2)
    assert "cannot read the space 'gone.yaml'" in command(*TUNE, "--space", "gone.yaml", code=2)
    assert not (folder / "runs").exists()


def test_without_optuna(folder, command, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert command(*TUNE, code=2) == "error: this needs optuna: pip install 'torch-grit[tune]'.\n"
    assert not (folder / "runs").exists()


def trials(folder: Path) -> list[dict]:
    path = folder / "runs/mine-tune/study.json"
    return json.loads(path.read_text())["trials"] if path.exists() else []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_stopped_from_outside(folder, command, number):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    arguments = [*LONG, "--trials", "3", "--epochs", "15", "--patience", "15"]
    with subprocess.Popen(
        [sys.executable, "-m", "grit", *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        deadline = time.monotonic() + 300
        while len(trials(folder)) < 2 and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(number)
        said = process.communicate(timeout=300)[1]
    assert process.returncode == (130 if number == signal.SIGINT else -number), said
    begun = trials(folder)
    assert [trial["state"] for trial in begun][:1] == ["complete"]
    assert begun[-1]["state"] == "running"
    if number == signal.SIGINT:
        assert "everything is saved.\nGo on with the same command and --resume." in said
    command(*arguments, "--resume")
    ended = trials(folder)
    assert len(ended) == 3
    assert {trial["state"] for trial in ended} <= {"complete", "pruned"}
    assert [trial["values"] for trial in ended[: len(begun)]] == [trial["values"] for trial in begun]
