"""What a terminal shows while training."""

import json
import re

import pytest
from rich.console import Console

import grit
from grit.cli.print_training import print_several
from grit.cli.progress_bar import progress_bar
from grit.cli.training_progress import watching
from grit.training.loop import Event


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setattr(Console, "is_terminal", True)
    monkeypatch.setenv("COLUMNS", "200")


def steps(watch):
    """Two epochs of two batches of 16 graphs."""
    for epoch, value in ((0, 0.75), (1, 0.5)):
        watch(Event(epoch, 2, 1, 2, 16, 4.0))
        watch(Event(epoch, 2, 2, 2, 16, 2.0))
        watch(Event(epoch, 2, 2, 2, 0, 3.0, {"mae": value, "rmse": 9.0}))


def last_line(capsys):
    said = capsys.readouterr()
    assert said.out == ""
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", said.err).splitlines()[-1]


def test_a_bar_on_a_terminal(terminal, capsys):
    """The loss is a running mean that begins anew with each epoch; the metric is that of the last epoch that was measured."""
    with watching("mae") as watch:
        steps(watch)
    line = last_line(capsys)
    assert line.startswith("epoch 2/2")
    assert "loss 3.9000  val mae 0.7500" in line
    assert re.search(r" \d+ graphs/s", line)


def test_one_bar_for_many_trials_shows_no_result_of_the_trial_before(terminal, capsys):
    with watching("mae", many="trial") as watch:
        steps(watch)
        watch(Event(0, 2, 1, 2, 16, 4.0, member=1, members=2))
    line = last_line(capsys)
    assert line.startswith("trial 2/2, epoch 1/2")
    assert "val mae" not in line


def test_lines_elsewhere_and_nothing_for_machines(capsys):
    with watching("mae") as watch:
        steps(watch)
    said = capsys.readouterr()
    assert said.err.splitlines() == [
        "epoch 1/2: loss 3.0000, val mae 0.7500",
        "epoch 2/2: loss 3.0000, val mae 0.5000",
    ]
    with watching("mae", quiet=True) as watch:
        steps(watch)
    assert capsys.readouterr() == ("", "")


def test_machines_see_no_bar_on_a_terminal_either(terminal, capsys):
    with watching("mae", quiet=True) as watch:
        steps(watch)
    assert capsys.readouterr() == ("", "")


def test_bars_go_to_stderr_and_only_to_a_terminal(monkeypatch, capsys):
    for terminal in (False, True):
        monkeypatch.setattr(Console, "is_terminal", terminal)
        with progress_bar() as bar:
            bar.advance(bar.add_task("reading", total=8), 8)
        said = capsys.readouterr()
        assert said.out == ""
        assert ("8/8" in said.err) == terminal


def test_the_papers_row_beside_several_seeds(capsys):
    recipe = grit.load_recipe("zinc")
    results = [{"metric": "mae", "test": {"mae": value}} for value in (0.1, 0.3)]
    print_several(recipe, results, as_json=True)
    summary = json.loads(capsys.readouterr().out)
    assert summary["paper"] == {"mean": recipe.paper.mean, "sd": recipe.paper.sd, "runs": 4}
    print_several(recipe, results, as_json=False)
    said = capsys.readouterr().out
    assert "2 seeds: mae 0.2000 ± 0.1414" in said
    assert f"the paper: {recipe.paper.mean} ± {recipe.paper.sd} (4 seeds)" in said
    assert "p = " in said
    accuracy = [{"metric": "accuracy", "test": {"accuracy": value}} for value in (0.1, 0.3)]
    print_several(grit.load_recipe("cifar10"), accuracy, as_json=False)
    assert "2 seeds: accuracy 20.0000 ± 14.1421" in capsys.readouterr().out
