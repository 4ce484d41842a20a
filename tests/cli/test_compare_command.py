"""``grit compare``: settings, figures, curves and the test."""

import json
import shutil

import pytest
from scipy.stats import ttest_ind

from grit.cli.ascii_plot import text_plot
from grit.datasets import from_pyg
from grit.training.run_folder import RunFolder
from grit.training.train import RunOptions, train
from tests.training.small import small_graphs, small_recipe, small_store

CPU = RunOptions(device="cpu")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two learning rates with two seeds each."""
    path, store = tmp_path_factory.mktemp("compare"), small_store()
    for name, lr in (("slow", "1e-5"), ("fast", "1e-2")):
        for seed in (0, 1):
            recipe = small_recipe(f"train.lr={lr}", f"train.seed={seed}", "train.epochs=2")
            train(recipe, path / name / f"seed{seed}", store=store, options=CPU)
    return path


@pytest.fixture
def grit(made, monkeypatch, command):
    monkeypatch.chdir(made)
    monkeypatch.setenv("COLUMNS", "160")
    return command


def results_of(made, name):
    return [RunFolder(made / name / f"seed{seed}").result()["test"]["mae"] for seed in (0, 1)]


def test_two_runs(made, grit):
    text = grit("compare", "slow/seed0", "fast/seed0")
    lines = [line.split() for line in text.splitlines()]
    assert ["train.lr", "1e-05", "0.01"] in lines
    assert not any("train.seed" in line or "model.num_layers" in line for line in text.splitlines())
    for name in ("slow", "fast"):
        assert f"{results_of(made, name)[0]:.4f}" in text
    assert "validation mae" in text
    assert "no test of the difference: a test takes two finished seeds or more of each configuration" in text
    assert "--seeds" in text


def test_groups_of_seeds_are_tested(made, grit):
    found = json.loads(grit("compare", "fast", "slow", "--json"))
    fast, slow = results_of(made, "fast"), results_of(made, "slow")
    assert [group["test"] for group in found["groups"]] == [fast, slow]
    [test] = found["tests"]
    assert (test["better"], test["other"]) == ((0, 1) if sum(fast) < sum(slow) else (1, 0))
    assert test["two_tailed"] == pytest.approx(ttest_ind(fast, slow).pvalue)
    assert set(found["differences"]) == {"train.lr", "train.seed"}
    text = grit("compare", "slow", "fast")
    assert f"p = {test['two_tailed']:.3g} (two-tailed" in text
    assert "group 1: slow/seed0 ... (seed 0, 1)" in text


def test_a_copy_is_no_second_measurement(made, grit, tmp_path):
    shutil.copytree(made / "fast" / "seed0", tmp_path / "copy")
    found = json.loads(grit("compare", "fast/seed0", tmp_path / "copy", "slow", "--json"))
    assert [len(group["runs"]) for group in found["groups"]] == [1, 2]
    assert found["tests"] == []
    text = grit("compare", "fast/seed0", tmp_path / "copy", "slow")
    assert f"group 1: fast/seed0 (seed 0); test mae {results_of(made, 'fast')[0]:.4f}\n" in text


def test_other_data_are_not_compared(made, grit, tmp_path):
    splits = {"train": range(50), "val": range(50, 60), "test": range(60, 65)}
    store = from_pyg(small_graphs(), splits=splits, name="small")
    for seed in (0, 1):
        recipe = small_recipe("train.epochs=1", f"train.seed={seed}")
        train(recipe, tmp_path / "other" / f"seed{seed}", store=store, options=CPU)
    assert "were tested on other data or splits" in grit("compare", "fast", tmp_path / "other")


def test_runs_on_other_splits_are_no_seeds_of_one_another(made, grit, tmp_path):
    splits = {"train": range(40), "val": range(50, 60), "test": range(60, 70)}
    store = from_pyg(small_graphs(), splits=splits, name="small")
    train(small_recipe("train.lr=1e-2", "train.seed=2", "train.epochs=2"), tmp_path / "run", store=store, options=CPU)
    found = json.loads(grit("compare", "fast/seed0", tmp_path / "run", "--json"))
    assert [len(group["runs"]) for group in found["groups"]] == [1, 1]
    assert set(found["differences"]) == {"data", "train.seed"}


def test_curves_as_a_picture(made, grit, tmp_path):
    for name, head in (("curves.png", b"\x89PNG"), ("curves.svg", b"<?xml")):
        grit("compare", "fast", "slow", "-o", tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(head)
    assert "slow/seed1" in (tmp_path / "curves.svg").read_text()
    assert "its ending must be one of" in grit("compare", "fast", "slow", "-o", tmp_path / "curves.txt", code=2)


def test_mistakes(made, grit, tmp_path):
    assert "there is nothing to compare: 1 run" in grit("compare", "fast/seed0", "fast/seed0", code=2)
    assert "not a run folder" in grit("compare", "fast/seed0", "absent", code=2)
    broken = shutil.copytree(made / "fast" / "seed0", tmp_path / "broken")
    (broken / "data.json").write_text("{}")
    assert "cannot be read" in grit("compare", "fast/seed0", broken, code=2)


def test_a_plot_in_characters():
    lines = text_plot([[4.0, 3.0, 2.0, 1.0], [1.0, float("nan"), 3.0, 1.0]], width=4, height=4)
    assert lines == [
        "4 |A",
        "  | AB",
        "  |  A",
        "1 |B  *",
        "  +----",
        "   1  4 epochs",
    ]
    assert text_plot([[], [float("nan")]]) == ["no values yet"]
    assert "A" in "".join(text_plot([[2.0]]))
