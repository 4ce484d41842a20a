"""Every example runs, and does what it says."""

import runpy
from pathlib import Path

import numpy as np

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(name, **options):
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"](**options)


def test_every_example_has_a_test():
    tests = {name.removeprefix("test_") for name in globals() if name.startswith("test_")} - {
        "every_example_has_a_test"
    }
    assert {path.stem for path in EXAMPLES.glob("*.py")} == tests


def test_one_layer():
    losses = run("one_layer")
    assert sum(losses[-4:]) < 0.7 * sum(losses[:4])


def test_own_csv(capsys):
    result, predictor = run("own_csv", epochs=2)
    assert np.isfinite(result["test"]["mae"])
    assert predictor.predict(["CCO"]).shape == (1, 1)
    printed = capsys.readouterr().out
    assert "regression of oxygens" in printed
    assert "not valid SMILES" in printed


def test_own_graphs():
    assert run("own_graphs")["test"]["auroc"] > 0.8


def test_node_classification():
    assert run("node_classification")["test"]["accuracy"] > 0.8


def test_transductive(capsys):
    result, words, probabilities = run(
        "transductive", epochs=40, nodes=400, words=300, links=900, labelled=10, val=100, test=200
    )
    assert result["test"]["accuracy"] > words + 0.1
    assert probabilities.shape == (400, 7)
    assert "70 in train, 100 in val, 200 in test, 30 in none; multiclass of 7 classes" in capsys.readouterr().out
