"""``grit train --init``, ``--log`` and the same of ``grit fit``, as a user types them."""

import json
import sys

import pytest

from grit.training.run_folder import RunFolder
from tests.training.small import SMALL, small_store

MODEL = [each for each in SMALL if "epochs" not in each]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("weights") / "store"
    small_store(out=path)
    return path


@pytest.fixture
def train(store, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def train(*arguments, code=0):
        fixed = [*MODEL, "train.epochs=1", f"dataset={store}", "--device", "cpu"]
        return command("train", "zinc", *fixed, *arguments, code=code)

    return train


def test_fine_tuning(train, tmp_path):
    train("--run", "first")
    text = train("--run", "second", "train.lr=1e-4", "--init", "first", "--init-part", "encoder")
    assert f"weights from {tmp_path / 'first' / 'checkpoints' / 'best.safetensors'} (sha256 " in text
    assert "taken: stem " in text
    assert "not taken, head: of the head: head." in text
    assert RunFolder("second").recipe().train.lr == 1e-4
    assert json.loads((tmp_path / "second" / "init.json").read_text())["part"] == "encoder"
    again = train("--run", "second", "train.lr=1e-4", "--resume")
    assert "weights from" not in again


def test_mistakes(train, tmp_path):
    assert "there is no run folder or file 'absent'" in train("--run", "run", "--init", "absent", code=2)
    assert "no logger 'banana'; there are csv, tensorboard, wandb" in train("--run", "run", "--log", "banana", code=2)
    train("--run", "first")
    told = train("--run", "run", "--init", "first", "--init-part", "tail", code=2)
    assert "--init-part 'tail': there are all, encoder" in told
    assert not (tmp_path / "run").exists()


def test_several_loggers(train, tmp_path):
    train("--run", "run", "--log", "csv", "--log", "tensorboard")
    assert len((tmp_path / "run" / "metrics.csv").read_text().splitlines()) == 2
    assert list((tmp_path / "run" / "tensorboard").glob("events.*"))


def test_a_missing_package_is_one_message_before_the_work(train, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    assert "pip install 'torch-grit[log]'" in train("--run", "run", "--log", "wandb", code=2)
    assert not (tmp_path / "run").exists()


def test_fit_logs_too(train, command, tmp_path):
    rows = "".join(f"{'C' * (k % 9 + 1)}{'ON'[k % 2]},{k % 9 + 0.5}\n" for k in range(40))
    (tmp_path / "mine.csv").write_text(f"smiles,y\n{rows}")
    fit = [
        "fit",
        "mine.csv",
        "--target",
        "y",
        "--preset",
        "fast",
        "--split",
        "random",
        "--no-forest",
        "--device",
        "cpu",
    ]
    assert "no logger 'banana'" in command(*fit, *MODEL, "--log", "banana", code=2)
    assert not (tmp_path / "runs").exists()
    command(*fit, *MODEL, "train.epochs=2", "--log", "csv")
    assert len((tmp_path / "runs" / "mine" / "model" / "metrics.csv").read_text().splitlines()) == 3
