"""What a run says about itself, where the epochs are not alike: the best is not the last, groups of batches have a remainder."""

import json

import numpy as np
import pytest
import torch

import grit
from grit.cli.print_training import print_several
from grit.datasets import from_pyg
from grit.training.checkpoint import read_checkpoint, write_checkpoint
from grit.training.run_folder import RunFolder
from grit.training.train import RunOptions, train
from tests.training.small import small_graphs, small_recipe, small_store

ALWAYS = RunOptions(device="cpu", checkpoint_seconds=0)
# The first epoch moves nothing, the second throws the model far away.
GETS_WORSE = ("train.epochs=2", "train.warmup_epochs=8", "train.lr=8")


@pytest.fixture(scope="module")
def store():
    return small_store()


@pytest.fixture(scope="module")
def gets_worse(store, tmp_path_factory):
    """A run whose best epoch is not its last."""
    path = tmp_path_factory.mktemp("worse") / "run"
    result = train(small_recipe(*GETS_WORSE), path, store=store, options=ALWAYS)
    values = [line["val"]["mae"] for line in RunFolder(path).history()]
    assert min(values) < 0.7 * values[-1]
    return path, result


def test_the_figures_are_those_of_the_best_epoch(store, gets_worse):
    path, result = gets_worse
    history = RunFolder(path).history()
    values = [line["val"]["mae"] for line in history]
    assert result["best_epoch"] == int(np.argmin(values)) < result["epochs"] - 1
    best, last = (grit.load(path / "checkpoints" / f"{name}.safetensors") for name in ("best", "last"))
    assert best.evaluate(store, "val")["mae"] == pytest.approx(min(values), rel=1e-5)
    assert last.evaluate(store, "val")["mae"] == pytest.approx(values[-1], rel=1e-5)
    for split in ("val", "test"):
        assert result[split] == pytest.approx(best.evaluate(store, split), rel=1e-5)
        assert result[split]["mae"] != pytest.approx(last.evaluate(store, split)["mae"], rel=1e-2)


def test_a_run_that_is_loaded_predicts_as_its_best_epoch(store, gets_worse):
    path, result = gets_worse
    assert grit.load(path).evaluate(store)["mae"] == pytest.approx(result["test"]["mae"], rel=1e-5)


def test_batches_left_over_make_a_step(store, tmp_path):
    """50 graphs in batches of 4 are 13 batches: with four to a step, three steps and one more for the last batch."""
    recipe = small_recipe("train.epochs=2", "train.batch_size=4", "train.accumulate=4")
    train(recipe, tmp_path / "run", store=store, options=ALWAYS)
    optimizer = read_checkpoint(RunFolder(tmp_path / "run").last).under("optimizer.")
    steps = {value.item() for name, value in optimizer.items() if name.endswith(".step")}
    assert steps == {2 * 4}


def test_fewer_batches_than_a_step_takes_still_teach(store, tmp_path):
    recipe = small_recipe("train.epochs=1", "train.warmup_epochs=0", "train.accumulate=1000")
    events = []
    train(recipe, tmp_path / "run", store=store, options=ALWAYS, watch=events.append)
    torch.manual_seed(recipe.train.seed)
    start = grit.build_model(recipe).state_dict()
    after = read_checkpoint(RunFolder(tmp_path / "run").last).under("model.")
    assert any(not torch.equal(after[name], start[name]) for name in start if "running" not in name)
    assert len([event for event in events if not event.metrics]) == 4


@pytest.mark.parametrize(
    ("recipe", "metric", "better", "worse"),
    [
        ("zinc", "mae", [0.050, 0.052, 0.051], [0.070, 0.068, 0.069]),
        ("cifar10", "accuracy", [0.80, 0.81, 0.805], [0.70, 0.71, 0.705]),
    ],
)
def test_better_than_the_paper_is_a_small_p(capsys, recipe, metric, better, worse):
    def shown(values):
        results = [{"metric": metric, "test": {metric: value}} for value in values]
        print_several(grit.load_recipe(recipe), results, as_json=True)
        return json.loads(capsys.readouterr().out)

    assert shown(better)["p_better_than_paper"] < 0.01
    assert shown(worse)["p_better_than_paper"] > 0.99
    assert shown(better)["runs"] == 3
    assert "p_better_than_paper" not in shown(better[:1])


def test_every_epoch_has_one_line_after_the_checkpoint_before_had_to_be_used(store, tmp_path):
    """The checkpoint before is from before the last epoch's line."""
    run = tmp_path / "run"
    train(small_recipe(), run, store=store, options=ALWAYS)
    folder = RunFolder(run)
    whole = folder.history()
    (run / "result.json").unlink()
    folder.last.write_bytes(folder.last.read_bytes()[:-1])
    train(small_recipe(), run, store=store, resume=True, options=ALWAYS)
    assert [{**line, "seconds": 0} for line in folder.history()] == [{**line, "seconds": 0} for line in whole]


def test_a_line_that_was_cut_off_is_no_obstacle(store, tmp_path):
    class Killed(BaseException):
        pass

    def watch(event):
        if event.epoch == 1 and event.batch == 2:
            with RunFolder(tmp_path / "run").metrics.open("a") as file:
                file.write('{"epoch": 1, "lr": 0.0')
            raise Killed

    with pytest.raises(Killed):
        train(small_recipe(), tmp_path / "run", store=store, watch=watch, options=ALWAYS)
    train(small_recipe(), tmp_path / "run", store=store, resume=True, options=ALWAYS)
    assert [line["epoch"] for line in RunFolder(tmp_path / "run").history()] == [0, 1, 2]


def test_splits_of_the_same_sizes_with_other_members_are_other_data(tmp_path):
    splits = {"train": range(50), "val": range(50, 60), "test": range(60, 70)}
    other = {**splits, "val": splits["test"], "test": splits["val"]}
    first, second = (
        from_pyg(small_graphs(), splits=each, name="small", out=tmp_path / name)
        for name, each in (("a", splits), ("b", other))
    )
    recipe = small_recipe("train.epochs=1")
    result = train(recipe, tmp_path / "run", store=first, options=ALWAYS)
    assert train(recipe, tmp_path / "run", store=first, resume=True, options=ALWAYS) == result
    with pytest.raises(grit.GritError, match="other data or splits"):
        train(recipe, tmp_path / "run", store=second, resume=True, options=ALWAYS)


def test_a_changed_character_in_the_state_of_a_checkpoint_is_noticed(tmp_path):
    path = tmp_path / "c.safetensors"
    write_checkpoint(path, {"a": torch.arange(6.0)}, {"progress": {"epoch": 3}})
    content = path.read_bytes()
    assert content.count(b'epoch\\": 3') == 1
    path.write_bytes(content.replace(b'epoch\\": 3', b'epoch\\": 4'))
    with pytest.raises(grit.GritError, match="damaged: its checksum does not match"):
        read_checkpoint(path)
