import json
import math
import os
import signal
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import grit
from grit.datasets import from_pyg
from grit.errors import Interrupted
from grit.training.checkpoint import read_checkpoint, write_checkpoint
from grit.training.run_folder import RunFolder
from grit.training.train import RunOptions, train
from tests.training.small import recipe_of, small_graphs, small_recipe, small_store

ALWAYS = RunOptions(device="cpu", checkpoint_seconds=0)


@pytest.fixture(scope="module")
def store():
    return small_store()


def weights(run):
    return read_checkpoint(Path(run) / "checkpoints" / "last.safetensors").under("model.")


def same_weights(a, b):
    first, second = weights(a), weights(b)
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def test_a_run_folder_is_complete(store, tmp_path):
    events = []
    result = train(small_recipe(), tmp_path / "run", store=store, watch=events.append, options=ALWAYS)
    folder = RunFolder.open(tmp_path / "run")
    assert sorted(path.name for path in folder.path.iterdir()) == [
        ".lock",
        "checkpoints",
        "config.yaml",
        "data.json",
        "environment.json",
        "metrics.jsonl",
        "result.json",
    ]
    assert sorted(path.name for path in folder.checkpoints.iterdir()) == [
        "best.safetensors",
        "last.safetensors",
        "previous-last.safetensors",
    ]
    assert folder.recipe() == small_recipe()
    assert folder.result() == result
    history = folder.history()
    assert [line["epoch"] for line in history] == [0, 1, 2]
    assert history[1]["lr"] == 3e-3
    assert history[result["best_epoch"]]["val"]["mae"] == min(line["val"]["mae"] for line in history)
    assert result["val"]["mae"] == pytest.approx(history[result["best_epoch"]]["val"]["mae"])
    assert result["num_parameters"] == grit.build_model(small_recipe()).num_parameters
    assert len([event for event in events if event.metrics]) == 3
    assert sum(event.graphs for event in events) == 150
    environment = json.loads((folder.path / "environment.json").read_text())
    assert environment["packages"]["torch"]


def test_the_same_seed_gives_the_same_bits(store, tmp_path):
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        train(small_recipe(f"train.seed={seed}"), tmp_path / name, store=store, options=ALWAYS)
        torch.rand(3)  # whatever happens between runs
    assert same_weights(tmp_path / "a", tmp_path / "b")
    assert not same_weights(tmp_path / "a", tmp_path / "c")


@pytest.mark.parametrize("stop_after", [1, 3, 4, 7])
def test_interrupted_anywhere_and_resumed_is_the_same_run(store, tmp_path, stop_after):
    train(small_recipe(), tmp_path / "whole", store=store, options=ALWAYS)
    steps = 0

    def watch(event):
        nonlocal steps
        steps += not event.metrics
        if steps == stop_after and not event.metrics:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Interrupted, match="everything is saved"):
        train(small_recipe(), tmp_path / "cut", store=store, watch=watch, options=RunOptions(device="cpu"))
    said = []
    torch.rand(5)
    result = train(small_recipe(), tmp_path / "cut", store=store, resume=True, say=said.append, options=ALWAYS)
    assert "resumed at epoch" in said[0]
    assert same_weights(tmp_path / "whole", tmp_path / "cut")
    whole = RunFolder(tmp_path / "whole")
    assert {**result, "seconds": 0} == {**whole.result(), "seconds": 0}
    lines = [{**line, "seconds": 0} for line in RunFolder(tmp_path / "cut").history()]
    assert lines == [{**line, "seconds": 0} for line in whole.history()]


def test_a_second_interrupt_is_at_once(store, tmp_path):
    def watch(event):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train(small_recipe(), tmp_path / "run", store=store, watch=watch, options=ALWAYS)


def test_training_outside_the_main_thread(store, tmp_path):
    done = []
    thread = threading.Thread(
        target=lambda: done.append(train(small_recipe(), tmp_path / "run", store=store, options=ALWAYS))
    )
    thread.start()
    thread.join()
    assert done


def test_a_finished_run_is_not_run_again(store, tmp_path):
    first = train(small_recipe(), tmp_path / "run", store=store, options=ALWAYS)
    steps = []
    told = []
    again = train(small_recipe(), tmp_path / "run", store=store, resume=True, watch=steps.append, say=told.append)
    assert again == first
    assert "was finished already" in told[0]
    assert steps == []


def test_existing_other_and_foreign_runs(store, tmp_path):
    train(small_recipe("train.epochs=1"), tmp_path / "run", store=store, options=ALWAYS)
    with pytest.raises(grit.GritError, match=r"exists already. Go on with it by --resume"):
        train(small_recipe("train.epochs=1"), tmp_path / "run", store=store)
    with pytest.raises(grit.GritError, match="begun with another configuration"):
        train(small_recipe("train.epochs=2"), tmp_path / "run", store=store, resume=True)
    with pytest.raises(grit.GritError, match="not a run folder: it has no config.yaml"):
        RunFolder.open(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("precious")
    with pytest.raises(grit.GritError, match="exists already"):
        train(small_recipe(), tmp_path / "full", store=store)


def test_resuming_where_there_is_nothing_begins(store, tmp_path):
    result = train(small_recipe("train.epochs=1"), tmp_path / "run", store=store, resume=True, options=ALWAYS)
    assert result["epochs"] == 1


def test_other_data_is_noticed(tmp_path):
    first = small_store(out=tmp_path / "a")
    recipe = small_recipe("train.epochs=1")
    train(recipe, tmp_path / "run", store=first, options=ALWAYS)
    (tmp_path / "run" / "result.json").unlink()
    from grit.datasets import from_pyg
    from tests.training.small import small_graphs

    second = from_pyg(
        small_graphs(), splits={"train": range(40), "val": range(40, 60), "test": range(60, 70)}, out=tmp_path / "b"
    )
    with pytest.raises(grit.GritError, match="other data or splits"):
        train(recipe, tmp_path / "run", store=second, resume=True)


def test_a_damaged_checkpoint_falls_back_to_the_one_before(store, tmp_path):
    train(small_recipe(), tmp_path / "whole", store=store, options=ALWAYS)
    train(small_recipe(), tmp_path / "cut", store=store, options=ALWAYS)
    folder = RunFolder(tmp_path / "cut")
    (folder.path / "result.json").unlink()
    folder.last.write_bytes(folder.last.read_bytes()[:100])
    said = []
    train(small_recipe(), tmp_path / "cut", store=store, resume=True, say=said.append, options=ALWAYS)
    assert "The one before is used" in said[0]
    assert same_weights(tmp_path / "whole", tmp_path / "cut")


def test_a_disk_that_fills_up(store, tmp_path):
    """On a real, tiny file system, where the tests may mount one: the run ends clearly, and goes on when there is room."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("mounting is not allowed here; test_checkpoint.py has the same with a simulated disk")
    recipe = small_recipe("model.hidden_dim=32")
    try:
        with pytest.raises(
            grit.GritError, match="No space left on device. The one before is kept; make room and resume"
        ):
            train(recipe, disk / "run", store=store, options=ALWAYS)
        assert read_checkpoint(disk / "run" / "checkpoints" / "last.safetensors")
        subprocess.run(["mount", "-o", "remount,size=20m", disk], check=True)
        train(recipe, disk / "run", store=store, resume=True, options=ALWAYS)
        train(recipe, tmp_path / "whole", store=store, options=ALWAYS)
        assert same_weights(disk / "run", tmp_path / "whole")
    finally:
        subprocess.run(["umount", disk], check=True)


@pytest.mark.parametrize(
    ("drop", "add", "message"),
    [
        ("head.linears.0.weight", "extra", "missing: head.linears.0.weight; unexpected: extra"),
        ("head.linears.0.weight", None, "missing: head.linears.0.weight"),
        (None, "extra", "unexpected: extra"),
    ],
)
def test_a_checkpoint_of_another_model(store, tmp_path, drop, add, message):
    train(small_recipe("train.epochs=1"), tmp_path / "run", store=store, options=ALWAYS)
    folder = RunFolder(tmp_path / "run")
    (folder.path / "result.json").unlink()
    found = read_checkpoint(folder.last)
    tensors = {name: value for name, value in found.tensors.items() if name != f"model.{drop}"}
    if add is not None:
        tensors[f"model.{add}"] = torch.zeros(1)
    write_checkpoint(folder.last, tensors, found.state)
    with pytest.raises(grit.GritError, match=rf"of another model \({message}\)"):
        train(small_recipe("train.epochs=1"), tmp_path / "run", store=store, resume=True)


def test_a_loss_that_is_not_a_number(tmp_path):
    from grit.datasets import from_pyg
    from tests.training.small import small_graphs

    graphs = small_graphs()
    for graph in graphs[1:40]:
        graph.y = torch.tensor([3e38])
    store = from_pyg(
        graphs, task="regression", splits={"train": range(50), "val": range(50, 60), "test": range(60, 70)}
    )
    store = store.with_task(store.task.model_copy(update={"standardise": False, "loss": "mse", "metric": "mae"}))
    with pytest.raises(grit.GritError, match=r"infinite or undefined \(NaN\) in epoch 1, batch 1. Check.*train.lr"):
        train(small_recipe(), tmp_path / "run", store=store, options=ALWAYS)


def test_a_model_that_diverged_is_a_plain_error(tmp_path):
    """One step is finite, and what it makes of the weights is not."""
    with pytest.raises(grit.GritError, match=r"predicts infinite or undefined values \(NaN\) for 10 of 10.*train.lr"):
        train(
            small_recipe("train.lr=1e30", "train.warmup_epochs=0", "train.batch_size=50", "train.clip_norm=null"),
            tmp_path / "run",
            store=small_store(),
            options=ALWAYS,
        )


@pytest.mark.parametrize("split", ["train", "val"])
def test_an_empty_split(split, tmp_path):
    store = small_store()
    splits = {**store.splits, split: np.zeros(0, dtype=np.int64)}
    with pytest.raises(grit.GritError, match=f"the split '{split}' is empty"):
        train(small_recipe(), tmp_path / "run", store=store.with_splits(splits))


def test_early_stopping(store, tmp_path):
    recipe = small_recipe("train.epochs=40", "train.patience=1", "train.lr=1e-12", "train.warmup_epochs=0")
    result = train(recipe, tmp_path / "run", store=store, options=ALWAYS)
    assert result["epochs"] < 40
    values = [line["val"]["mae"] for line in RunFolder(tmp_path / "run").history()]
    assert result["epochs"] == values.index(min(values)) + 2


def test_of_equally_good_epochs_the_latest_is_kept(store, tmp_path, monkeypatch):
    monkeypatch.setattr("grit.learning.task.Task.metrics", lambda self, outputs, targets: {"mae": 1.0})
    assert train(small_recipe(), tmp_path / "run", store=store, options=ALWAYS)["best_epoch"] == 2


def test_a_metric_that_cannot_be_computed_is_told(store, tmp_path, monkeypatch):
    monkeypatch.setattr("grit.learning.task.Task.metrics", lambda self, outputs, targets: {"mae": float("nan")})
    told = []
    result = train(small_recipe(), tmp_path / "run", store=store, options=ALWAYS, say=told.append)
    assert result["best_epoch"] == 2
    assert any("mae could not be computed on the validation set in any epoch" in line for line in told)
    assert grit.load(tmp_path / "run").recipe == small_recipe()


def test_accumulated_batches_make_one_step(store, tmp_path):
    """With layer norm and no dropout, four batches of 4 accumulated are a batch of 16."""
    common = (
        "model.norm=layer",
        "model.attention_dropout=0.0",
        "train.precision=64-true",
        "train.epochs=1",
        "train.warmup_epochs=0",
        "train.lr=1e-5",
    )
    even = store.with_splits({"train": np.arange(48), "val": np.arange(50, 60)})
    train(small_recipe(*common, "train.batch_size=16"), tmp_path / "one", store=even, options=ALWAYS)
    train(
        small_recipe(*common, "train.batch_size=4", "train.accumulate=4"), tmp_path / "four", store=even, options=ALWAYS
    )
    a, b = weights(tmp_path / "one"), weights(tmp_path / "four")
    start = grit.build_model(small_recipe(*common)).state_dict()
    assert any((a[name] - start[name]).abs().max() > 1e-5 for name in a)
    for name in a:
        torch.testing.assert_close(a[name], b[name], rtol=0, atol=1e-9)


def test_baselines_train_in_the_same_loop(store, tmp_path):
    result = train(recipe_of("gine"), tmp_path / "run", store=store, options=ALWAYS)
    predictor = grit.load(tmp_path / "run")
    assert type(predictor.network).__name__ == "Gine"
    assert predictor.evaluate(store)["mae"] == pytest.approx(result["test"]["mae"], rel=1e-5)
    with pytest.raises(grit.GritError, match="embed is for GRIT"):
        predictor.embed(["CC"])


def test_compiled_training_agrees(store, tmp_path):
    import torch._dynamo

    torch._dynamo.config.suppress_errors = False
    recipe = small_recipe("train.epochs=1", "train.precision=64-true", "model.attention_dropout=0.0", "train.lr=1e-5")
    train(recipe, tmp_path / "plain", store=store, options=ALWAYS)
    original = torch.compile
    try:
        torch.compile = lambda model, dynamic: original(model, backend="eager", dynamic=dynamic)
        train(recipe, tmp_path / "compiled", store=store, options=ALWAYS._replace(compile_model=True))
    finally:
        torch.compile = original
    a, b = weights(tmp_path / "plain"), weights(tmp_path / "compiled")
    for name in a:
        torch.testing.assert_close(a[name], b[name], rtol=0, atol=1e-9)


@pytest.mark.parametrize("batch_size", [1, 2, 3, 5, 8, 32])
def test_a_batch_of_one_node_is_joined_to_its_neighbour(tmp_path, batch_size):
    """As the last batch of FreeSolv may be: 513 molecules, 32 at a time, some of one atom."""
    graphs = small_graphs(39)
    alone = Data(x=torch.zeros(1, 1, dtype=torch.long), edge_index=torch.zeros(2, 0).long(), y=torch.tensor([0.5]))
    alone.edge_attr = torch.zeros(0, dtype=torch.long)
    graphs[1::4] = [alone.clone() for _ in graphs[1::4]]
    store = from_pyg(graphs, splits={"train": range(33), "val": range(33, 36), "test": range(36, 39)}, name="atoms")
    recipe = small_recipe(f"train.batch_size={batch_size}", "train.epochs=2")
    result = train(recipe, tmp_path / "run", store=store, options=RunOptions(device="cpu"))
    assert math.isfinite(result["test"]["mae"])
    assert result["epochs"] == 2
