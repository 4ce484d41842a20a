"""A run is not resumed on other splits, also where they have the same sizes."""

import pytest

import grit
from grit.datasets import from_pyg
from grit.learning.task import Task
from grit.training.run_folder import describe_data
from grit.training.train import RunOptions, train
from tests.training.small import small_graphs, small_recipe

SPLITS = {"train": range(50), "val": range(50, 60), "test": range(60, 70)}


def checksums(out, splits):
    store = from_pyg(small_graphs(), splits=splits, out=out)
    return describe_data(store, Task(store.task), {}).split_checksums


def test_checksums_are_those_of_the_members(tmp_path):
    one = checksums(tmp_path / "a", SPLITS)
    assert one == checksums(tmp_path / "b", SPLITS)
    assert len(set(one.values())) == 3
    swapped = checksums(tmp_path / "c", {**SPLITS, "val": SPLITS["test"], "test": SPLITS["val"]})
    assert swapped == {**one, "val": one["test"], "test": one["val"]}
    one_moved = checksums(tmp_path / "d", {**SPLITS, "val": [*range(51, 60), 69], "test": [*range(60, 69), 50]})
    assert one_moved["train"] == one["train"]
    assert not {one_moved["val"], one_moved["test"]} & set(one.values())


@pytest.mark.parametrize("on_disk", [True, False])
def test_other_splits_of_the_same_sizes_are_noticed(tmp_path, on_disk):
    recipe = small_recipe("train.epochs=1")
    first = from_pyg(small_graphs(), splits=SPLITS, out=tmp_path / "a" if on_disk else None)
    train(recipe, tmp_path / "run", store=first, options=RunOptions(checkpoint_seconds=0))
    (tmp_path / "run" / "result.json").unlink()
    splits = {**SPLITS, "val": SPLITS["test"], "test": SPLITS["val"]}
    second = from_pyg(small_graphs(), splits=splits, out=tmp_path / "b" if on_disk else None)
    with pytest.raises(grit.GritError, match="other data or splits"):
        train(recipe, tmp_path / "run", store=second, resume=True)


def test_other_targets_of_the_same_graphs_are_noticed(tmp_path):
    recipe = small_recipe("train.epochs=1")
    store = from_pyg(small_graphs(), splits=SPLITS, out=tmp_path / "a")
    train(recipe, tmp_path / "run", store=store, options=RunOptions(checkpoint_seconds=0))
    (tmp_path / "run" / "result.json").unlink()
    graphs = small_graphs()
    graphs[3].y += 1
    with pytest.raises(grit.GritError, match="other data or splits"):
        train(recipe, tmp_path / "run", store=from_pyg(graphs, splits=SPLITS, out=tmp_path / "b"), resume=True)
