"""The commands as a new user types them, on small data."""

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

from grit.cli.print_training import parse_seeds
from grit.errors import GritError

SMALL = [
    "encoding.walk_steps=4",
    "model.num_layers=1",
    "model.hidden_dim=8",
    "model.num_heads=2",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("cli")
    with (path / "mine.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["name", "SMILES", "weight"])
        writer.writerows([f"m{k}", "C" * (k % 9 + 1) + ("O" if k % 2 else "N"), f"{k % 9 + 0.5}"] for k in range(60))
        writer.writerow(["broken", "C(", "1.0"])
    return path


def grit(folder, *arguments, code=0):
    environment = {**os.environ, "GRIT_DATA": str(folder / "data"), "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    done = subprocess.run(
        [sys.executable, "-m", "grit", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=1800,  # against a hang; a busy machine takes its time
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


def test_fit_evaluate_predict(folder):
    done = grit(
        folder,
        "fit",
        "mine.csv",
        "--target",
        "weight",
        "--preset",
        "fast",
        "--split",
        "random",
        "train.epochs=2",
        *SMALL,
    )
    assert "SMILES from the column 'SMILES'; regression of weight (its values are numbers)." in done.stdout
    assert "1 rows could not be used; runs/mine/data/skipped.csv says why" in done.stdout
    assert "fingerprints + random forest" in done.stdout
    assert "always the mean" in done.stdout
    assert "Next: grit predict runs/mine INPUT.csv" in done.stdout
    assert "epoch 2/2" in done.stderr
    shown = grit(folder, "evaluate", "runs/mine/model")
    assert re.search(r"6 +mae +[0-9.]+", shown.stdout)
    assert "runs/mine-test-predictions.csv" in shown.stdout
    metrics = json.loads(grit(folder, "evaluate", "runs/mine/model", "--split", "val", "--json").stdout)["metrics"]
    result = json.loads((folder / "runs/mine/model/result.json").read_text())
    assert metrics["mae"] == pytest.approx(result["val"]["mae"], rel=1e-5)
    told = grit(folder, "predict", "runs/mine/model", "mine.csv", "-o", "out.csv")
    assert "out.csv: 61 rows, 1 without a prediction" in told.stdout
    with (folder / "out.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [line["name"] for line in lines] == [*[f"m{k}" for k in range(60)], "broken"]
    assert lines[-1]["note"] == "not valid SMILES"
    again = grit(folder, "fit", "mine.csv", "--target", "weight", code=2)
    assert "exists already. Go on with it by --resume" in again.stderr


def test_numbers_beside_the_graph_weights_and_balance(folder):
    with (folder / "more.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["SMILES", "active", "temp", "sure"])
        writer.writerows(
            ["C" * (k % 9 + 1) + ("O" if k % 2 else "N"), int(k % 4 == 0), "" if k == 7 else k, k % 3]
            for k in range(60)
        )
    inputs = ["--features", "temp", "--descriptors", "rdkit", "--weights", "sure", "--balance"]
    options = ["--preset", "fast", "--split", "random", "--no-forest", "--epochs", "1", *SMALL]
    told = grit(folder, "fit", "more.csv", "--target", "active", *inputs, *options).stdout
    assert "The model also reads the columns temp and rdkit descriptors" in told
    assert "temp: 1 blank cells" in told
    assert "Rows count in the loss by the column 'sure'" in told
    assert "classes count in the loss by their rarity in the training set: active 0 x " in told
    grit(folder, "predict", "runs/more/model", "more.csv", "-o", "more-out.csv")
    with (folder / "more-out.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert all(line["active_prob"] for line in lines)
    assert [line["note"] for line in lines if line["note"]] == [
        "temp: blank, the mean of the training molecules was used"
    ]
    refused = grit(folder, "predict", "runs/more/model", "mine.csv", "-o", "other.csv", code=2)
    assert "the model reads the columns 'temp' beside the SMILES, and 'mine.csv' has no 'temp'" in refused.stderr
    again = ["fit", "more.csv", "--target", "active", *inputs[2:], *options, "--resume"]
    assert "begun with another choice of features or descriptors" in grit(folder, *again, code=2).stderr


FIT = ["fit", "mine.csv", "--target", "weight", "--preset", "fast", "--split", "random", "--no-forest"]


@pytest.fixture(scope="module")
def fitted(folder):
    """A run that stops early."""
    done = grit(folder, *FIT, "--run", "runs/kept", "train.epochs=50", "train.patience=1", "train.lr=1e-9", *SMALL)
    assert "of 50: no better on validation for 1 epochs (train.patience)" in done.stdout
    return folder


def test_a_run_can_be_moved_and_used_from_anywhere(fitted, tmp_path):
    shutil.copytree(fitted / "runs" / "kept" / "model", tmp_path / "elsewhere")
    shutil.copy(fitted / "mine.csv", tmp_path)
    told = grit(tmp_path, "predict", "elsewhere", "mine.csv", "-o", "out.csv")
    assert "out.csv: 61 rows, 1 without a prediction" in told.stdout


def test_resuming_with_something_else_is_refused(fitted):
    again = [*FIT, "--run", "runs/kept", "--resume", "train.epochs=50", "train.patience=1", "train.lr=1e-9", *SMALL]
    grit(fitted, *again)
    other = [word if word != "random" else "scaffold" for word in again]
    assert "was begun with another split" in grit(fitted, *other, code=2).stderr
    other = [word if word != "weight" else "name" for word in again]
    assert "was begun with another target" in grit(fitted, *other, code=2).stderr
    text = (fitted / "mine.csv").read_text()
    (fitted / "more").mkdir()
    (fitted / "more" / "mine.csv").write_text(text + "new,CCC,3.5\n")
    other = [word if word != "mine.csv" else "more/mine.csv" for word in again]
    assert "was begun with another table" in grit(fitted, *other, code=2).stderr
    told = grit(fitted, *again, "train.epochs=30", code=2).stderr
    assert "train.epochs was 50, is now 30" in told
    assert "with the overrides that it was begun with" in told


def test_mistakes_with_a_run(fitted):
    run = "runs/kept/model"
    for arguments, message in (
        (["predict", run, "mine.csv", "-o", "."], "it is a folder"),
        (["predict", run, "mine.csv", "-o", "absent/o.csv"], "there is no folder 'absent'"),
        (["predict", run, "mine.csv", "-o", "o.csv", "--device", "banana"], "cannot use the device 'banana'"),
        (["train", run], "add --resume"),
        (["fit", "absent.csv", "--target", "weight", "--run", "runs/kept", "--resume"], "No such file"),
        (["fit", "mine.csv", "--target", "weight", "--run", "mine.csv"], "'mine.csv' is a file"),
    ):
        assert message in grit(fitted, *arguments, code=2).stderr


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (["train.epoch=1"], "did you mean 'epochs'"),
        (["--device", "banana"], "cannot use the device"),
        (["--split", "file:absent.json"], "absent.json"),
        (["--standardise", "all"], "standardise must be none or parent, got 'all'"),
        (["--duplicates", "join"], "duplicates must be one of keep, merge, drop, error, got 'join'"),
    ],
)
def test_a_fit_that_cannot_begin_leaves_nothing(folder, mistake, message):
    command = ["fit", "mine.csv", "--target", "weight", "--run", "runs/failed", *mistake]
    assert message in grit(folder, *command, code=2).stderr
    assert not (folder / "runs" / "failed").exists()


def test_a_study_that_cannot_begin_leaves_nothing(folder):
    command = ["reproduce", "propositions", "foo=1", "--run", "runs/study"]
    assert "this study has no option 'foo'; it has none" in grit(folder, *command, code=2).stderr
    assert not (folder / "runs" / "study").exists()


def test_machines_get_json_alone(folder):
    done = grit(
        folder,
        "fit",
        "mine.csv",
        "--target",
        "weight",
        "--run",
        "runs/json",
        "--split",
        "random",
        "--no-forest",
        "--json",
        "train.epochs=1",
        *SMALL,
    )
    assert {"test", "constant", "skipped", "seconds"} <= json.loads(done.stdout).keys()
    assert [line for line in done.stderr.splitlines() if not line.startswith("grit: ")] == []  # that is about kernels


def test_train_several_seeds(folder):
    done = grit(folder, "train", "zinc-mini", "--seeds", "0,1", "train.epochs=1", "train.batch_size=500", *SMALL)
    assert "2 seeds: mae" in done.stdout
    assert {path.name for path in (folder / "runs" / "zinc-mini").iterdir()} == {"seed0", "seed1"}
    again = grit(
        folder, "train", "zinc-mini", "--seeds", "0,1", "--json", "train.epochs=1", "train.batch_size=500", *SMALL
    )
    summary = json.loads(again.stdout)
    assert (summary["metric"], summary["runs"]) == ("mae", 2)
    wrong = grit(folder, "train", "zinc-mini", "--seeds", "a,b", code=2)
    assert "whole numbers with commas" in wrong.stderr


def test_ctrl_c_saves_and_resume_goes_on(folder):
    arguments = ["train", "zinc-mini", "--run", "runs/stopped", "train.epochs=30", "train.batch_size=50", *SMALL]
    environment = {**os.environ, "GRIT_DATA": str(folder / "data"), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "grit", *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    waited = time.monotonic() + 120
    while not (folder / "runs/stopped/checkpoints/last.safetensors").exists() and time.monotonic() < waited:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "everything is saved" in errors
    assert errors.endswith("Go on with the same command and --resume.\n")
    assert "error:" not in errors
    done = grit(folder, "train", "runs/stopped", "--resume")  # the run folder says the rest
    assert "resumed at epoch" in done.stdout
    assert "Next: grit evaluate runs/stopped" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "zinc"], "zinc has not been built yet"),
        (["train", "zonc"], "unknown recipe 'zonc'"),
        (["fit", "absent.csv", "--target", "y"], "No such file"),
        (["fit", "mine.csv", "--target", "name", "--run", "runs/text"], "is text, such as 'broken'"),
        (["fit", "mine.csv", "--target", "weight", "--run", "runs/p", "--preset", "huge"], "unknown preset 'huge'"),
        (["evaluate", "absent"], "not a run folder"),
        (["predict", "absent", "mine.csv", "-o", "o.csv"], "not a run folder"),
        (["datasets", "zonc"], "unknown data set 'zonc'"),
        (["datasets", "build", "a", "b"], "say: grit datasets"),
        (["datasets", "build"], "grit datasets build NAME"),
    ],
)
def test_mistakes_are_one_message(folder, arguments, message):
    assert message in grit(folder, *arguments, code=2).stderr


def test_data_sets_are_listed_and_shown(folder):
    assert "zinc-mini" in grit(folder, "datasets").stdout
    shown = grit(folder, "datasets", "zinc-mini").stdout
    assert "2,500" in shown
    assert "train: 2,000 graphs" in shown


def test_the_demo_runs_small(folder):
    done = grit(folder, "demo", "train.epochs=1", *SMALL)
    for name in ("GRIT", "always the mean", "aspirin", "caffeine", "fluorescein", "Next:"):
        assert name in done.stdout
    assert (folder / "runs" / "demo-1" / "result.json").exists()


def test_parse_seeds():
    assert parse_seeds("0,1, 2") == [0, 1, 2]
    with pytest.raises(GritError, match="whole numbers"):
        parse_seeds("x")
    with pytest.raises(GritError, match="names a seed twice"):
        parse_seeds("0,1,0")
