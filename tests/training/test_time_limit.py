"""`train.max_seconds`: training ends on time, with a clock that the test moves."""

import pytest

from grit.errors import Interrupted
from grit.training import loop
from grit.training.run_folder import RunFolder
from grit.training.train import RunOptions, train
from tests.training.small import small_recipe, small_store

CPU = RunOptions(device="cpu", checkpoint_seconds=1e9)
STEPS = 4  # of an epoch: 50 graphs in batches of 16


class Clock:
    """Every training step takes ten seconds; validation takes none."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    step = loop.TrainingLoop.step

    def slow(self, batch, ends_step):
        clock.now += 10
        return step(self, batch, ends_step)

    monkeypatch.setattr(loop, "time", clock)
    monkeypatch.setattr(loop.TrainingLoop, "step", slow)
    return clock


@pytest.fixture(scope="module")
def store():
    return small_store()


def run(folder, store, *overrides, **options):
    said = []
    result = train(small_recipe(*overrides), folder, store=store, options=CPU, say=said.append, **options)
    return result, said


def test_a_limit_that_is_not_reached_changes_nothing(clock, store, tmp_path):
    free, _ = run(tmp_path / "free", store)
    bound, said = run(tmp_path / "bound", store, "train.max_seconds=1000")
    assert bound == free
    assert said == []
    assert free["seconds"] == 3 * STEPS * 10


def test_training_ends_in_the_middle_of_an_epoch(clock, store, tmp_path):
    result, said = run(
        tmp_path / "run", store, "train.max_seconds=55"
    )  # the sixth step passes it, the second of an epoch
    assert (result["epochs"], result["seconds"], result["cut_at"]) == (2, 60, 0.5)
    assert len(RunFolder(tmp_path / "run").history()) == 2
    assert said == ["stopped after epoch 2 of 3, of which 50% was trained: its time of 55 s is up (train.max_seconds)"]


def test_less_than_an_epoch_is_validated_and_tested(clock, store, tmp_path):
    result, _ = run(tmp_path / "run", store, "train.max_seconds=1")
    assert (result["epochs"], result["best_epoch"], result["cut_at"]) == (1, 0, 1 / STEPS)
    assert result["test"]["mae"] > 0


def test_no_epoch_is_begun_when_the_time_is_up(clock, store, tmp_path):
    result, said = run(tmp_path / "run", store, f"train.max_seconds={STEPS * 10}")
    assert (result["epochs"], result["seconds"]) == (1, STEPS * 10)
    assert "cut_at" not in result
    assert said == ["stopped after epoch 1 of 3: its time of 40 s is up (train.max_seconds)"]


def test_time_before_an_interruption_counts(clock, store, tmp_path):
    limit = "train.max_seconds=55"
    steps = []

    def stop(event):
        steps.append(event)
        if len(steps) == 3:
            raise Interrupted("stopped")

    with pytest.raises(Interrupted):
        train(
            small_recipe(limit),
            tmp_path / "run",
            store=store,
            options=CPU._replace(checkpoint_seconds=0),
            watch=stop,
        )
    clock.now += 1e6  # the night between
    result, _ = run(tmp_path / "run", store, limit, resume=True)
    assert (result["epochs"], result["cut_at"], result["seconds"]) == (2, 0.5, 60)
