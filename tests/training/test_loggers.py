"""What loggers are told, and what they leave in the run folder."""

import csv
import json
import random
import struct

import pytest

import grit
from grit.errors import GritError
from grit.training.checkpoint import read_checkpoint
from grit.training.run_folder import RunFolder
from grit.training.train import RunOptions, train
from tests.training.small import small_recipe, small_store

CPU = RunOptions(device="cpu", checkpoint_seconds=0)


@pytest.fixture(scope="module")
def store():
    return small_store()


class Noted:
    """A logger that notes what it is told, and draws random numbers."""

    def __init__(self):
        self.told = TOLD
        self.told.append("made")

    def begin(self, recipe, folder):
        random.random()
        self.told.append(("begin", recipe.train.seed, folder.path.name))

    def epoch(self, metrics):
        random.random()
        self.told.append(dict(metrics))

    def end(self, result):
        self.told.append(("end", result))


TOLD = []


@pytest.fixture
def told(monkeypatch):
    monkeypatch.setitem(grit.LOGGERS, "noted", Noted)
    TOLD.clear()
    return TOLD


class Stopped(Exception):
    pass


def stop_at(epoch):
    """Stop within the epoch, counted from 0."""

    def watch(event):
        if event.epoch == epoch and event.batch == 2:
            raise Stopped

    return watch


def test_a_logger_is_told_everything_once(store, tmp_path, told):
    result = train(small_recipe(), tmp_path / "run", store=store, options=CPU._replace(log=("noted", "noted")))
    history = RunFolder(tmp_path / "run").history()
    lines = [
        {
            "epoch": line["epoch"],
            "lr": line["lr"],
            "train_loss": line["train_loss"],
            **{f"val/{name}": value for name, value in line["val"].items()},
            "seconds": line["seconds"],
        }
        for line in history
    ]
    assert told == ["made", ("begin", 0, "run"), *lines, ("end", result)]


def test_a_logger_changes_nothing_and_is_told_all_epochs_when_a_run_goes_on(store, tmp_path, told):
    train(small_recipe(), tmp_path / "plain", store=store, options=CPU)
    options = CPU._replace(log=("noted",))
    with pytest.raises(Stopped):
        train(small_recipe(), tmp_path / "run", store=store, options=options, watch=stop_at(1))
    assert [each["epoch"] for each in told if isinstance(each, dict)] == [0]
    assert told[-1] == ("end", None)
    told.clear()
    result = train(small_recipe(), tmp_path / "run", store=store, resume=True, options=options)
    assert [each["epoch"] for each in told if isinstance(each, dict)] == [0, 1, 2]
    assert told[-1] == ("end", result)
    last = [read_checkpoint(tmp_path / run / "checkpoints" / "last.safetensors").tensors for run in ("plain", "run")]
    assert all(last[0][name].equal(last[1][name]) for name in last[0])


def test_an_unknown_logger_is_an_error_before_anything_is_made(store, tmp_path):
    with pytest.raises(GritError, match="no logger 'banana'; there are csv, tensorboard, wandb"):
        train(small_recipe(), tmp_path / "run", store=store, options=CPU._replace(log=("banana",)))
    assert not (tmp_path / "run").exists()


def interrupted_and_resumed(store, run, name):
    options = CPU._replace(log=(name,))
    with pytest.raises(Stopped):
        train(small_recipe(), run, store=store, options=options, watch=stop_at(2))
    return train(small_recipe(), run, store=store, resume=True, options=options)


def test_csv(store, tmp_path):
    interrupted_and_resumed(store, tmp_path / "run", "csv")
    with (tmp_path / "run" / "metrics.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    history = RunFolder(tmp_path / "run").history()
    assert [int(line["epoch"]) for line in lines] == [0, 1, 2]
    assert [float(line["val/mae"]) for line in lines] == [line["val"]["mae"] for line in history]
    assert [float(line["train_loss"]) for line in lines] == [line["train_loss"] for line in history]


def test_a_finished_run_is_logged_afterwards(store, tmp_path):
    train(small_recipe(), tmp_path / "run", store=store, options=CPU)
    assert not (tmp_path / "run" / "metrics.csv").exists()
    train(small_recipe(), tmp_path / "run", store=store, resume=True, options=CPU._replace(log=("csv",)))
    assert len((tmp_path / "run" / "metrics.csv").read_text().splitlines()) == 1 + 3


def test_tensorboard(store, tmp_path):
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    result = interrupted_and_resumed(store, tmp_path / "run", "tensorboard")
    found = events.EventAccumulator(str(tmp_path / "run" / "tensorboard"))
    found.Reload()
    shown = [(event.step, event.value) for event in found.Scalars("val/mae")]
    history = RunFolder(tmp_path / "run").history()
    assert shown == [(line["epoch"] + 1, pytest.approx(line["val"]["mae"])) for line in history]
    [test] = found.Scalars("best test/mae")
    assert (test.step, test.value) == (result["best_epoch"] + 1, pytest.approx(result["test"]["mae"]))


def test_wandb(store, tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.delenv("WANDB_MODE", raising=False)
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")
    result = interrupted_and_resumed(store, tmp_path / "run", "wandb")
    logged, names, runs = wandb_steps(tmp_path / "run" / "wandb")
    assert logged == [0, 1, 2]
    assert {run.project for run in runs} == {"grit"}
    assert {item.key for item in runs[0].config.update} >= {"dataset", "encoding", "model", "train"}
    assert len(names) == 1  # both processes wrote to one run
    assert json.loads((tmp_path / "run" / "wandb.json").read_text())["epochs"] == result["epochs"]
    parts = sorted(path.name for path in (tmp_path / "run" / "wandb").glob("offline-run-*"))
    train(small_recipe(), tmp_path / "run", store=store, resume=True, options=CPU._replace(log=("wandb",)))
    assert sorted(path.name for path in (tmp_path / "run" / "wandb").glob("offline-run-*")) == parts


def wandb_steps(folder):
    """The epochs that the files of offline runs hold, the ids of their runs, and what is said of each."""
    from wandb.proto.wandb_internal_pb2 import Record

    steps, names, runs = [], set(), []
    for path in folder.glob("offline-run-*/*.wandb"):
        for data in records(path.read_bytes()):
            record = Record()
            record.ParseFromString(data)
            if record.WhichOneof("record_type") == "run":
                names.add(record.run.run_id)
                runs.append(record.run)
            for item in record.history.item:
                if item.key == "epoch" or list(item.nested_key) == ["epoch"]:
                    steps.append(json.loads(item.value_json))
    return sorted(steps), names, runs


def records(content, block=32768):
    """The records of a log in LevelDB's format: length and kind (1 whole, 2 first, 3 middle, 4 last) before each part."""
    place, parts = 7, b""
    while place + 7 <= len(content):
        if block - place % block < 7:
            place += block - place % block
            continue
        length, kind = struct.unpack("<HB", content[place + 4 : place + 7])
        parts += content[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):
            yield parts
            parts = b""
