import subprocess
import sys

import pytest

import grit
from grit.studies.race import probe as probing
from grit.studies.race.budget import parse_budget
from grit.studies.race.probe import ProbeRequest, ProbeResult, measure_apart


def request(*overrides, **changes):
    recipe = grit.load_recipe("zinc", "model.num_layers=1", "model.hidden_dim=16", "train.batch_size=8", *overrides)
    whole = ProbeRequest(recipe.model_dump(mode="json"), None, (40, 10, 3), rounds=2, threads=1, device="cpu")
    return whole._replace(**changes)


def test_a_fresh_process_measures():
    found = measure_apart(request())
    assert min(found.make, found.make_first, found.step, found.evaluate) > 0
    assert found.batches == (5, 2, 1)
    assert found.megabytes is None or 1 < found.megabytes < 2_000
    recipe = grit.load_recipe("zinc", "model.num_layers=1", "model.hidden_dim=16")
    assert found.num_parameters == grit.build_model(recipe).num_parameters


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", r"\(signal 9\): probably out of memory"),
        ("raise RuntimeError('no room')", "some steps that were tried failed: RuntimeError: no room"),
        ("raise SystemExit(3)", "some steps that were tried failed: exit code 3"),
    ],
)
def test_a_process_that_dies_is_an_error(monkeypatch, program, message):
    run = subprocess.run

    def dying(arguments, **options):
        return run([sys.executable, "-c", program], **options)

    monkeypatch.setattr(probing.subprocess, "run", dying)
    with pytest.raises(grit.GritError, match=message):
        measure_apart(request())


def test_what_is_computed_once_counts_once():
    probe = ProbeResult(
        make=1.0, make_first=3.0, step=2.0, evaluate=1.0, batches=(10, 5, 5), megabytes=None, num_parameters=1
    )
    assert probe.epoch == 10 * 3 + 5 * 2
    assert probe.once == 2 * 20
    assert probe.epochs_within(3 * probe.epoch + 2 * 15) == 3
    assert probe.epochs_within(3 * probe.epoch + 2 * 15 - 1) == 2
    assert probe.epochs_within(1) == 1


def test_budgets():
    probe = ProbeResult(0.0, 0.0, 6.0, 0.0, (10, 1, 1), None, 1)
    assert parse_budget("epochs:5").overrides(probe) == ("train.epochs=5",)
    assert parse_budget("time:10").overrides(probe) == ("train.epochs=10", "train.max_seconds=600.0")
    assert parse_budget("published").overrides(probe) == ()
    assert [parse_budget(text).words for text in ("epochs:1", "epochs:5", "time:0.5", "time:1", "published")] == [
        "1 epoch each",
        "5 epochs each",
        "0.5 minutes each",
        "1 minute each",
        "as published",
    ]
