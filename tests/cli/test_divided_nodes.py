"""The nodes of one graph, from a store on disk to predictions, by commands alone."""

import csv
import json

import pytest

from grit.datasets import from_pyg
from tests.training.small import SMALL, divided_graph


@pytest.fixture
def store(tmp_path):
    from_pyg(divided_graph(), name="communities", out=tmp_path / "store")
    return tmp_path / "store"


def test_train_evaluate_and_predict(command, store, tmp_path):
    run, out = tmp_path / "run", tmp_path / "out.csv"
    said = command("train", "own-nodes", f"dataset={store}", *SMALL, "--run", run)
    assert "15 nodes to learn from, 15 to choose by" in said
    assert f"grit predict {run} {store}" in said.replace("\n", "")
    result = json.loads((run / "result.json").read_text())
    for split in ("val", "test"):
        measured = json.loads(command("evaluate", run, "--split", split, "--json"))
        assert measured["metrics"]["accuracy"] == pytest.approx(result[split]["accuracy"])
    assert "60 rows, 0 without a prediction" in command("predict", run, store, "-o", out)
    with out.open() as file:
        assert [line["node"] for line in csv.DictReader(file)] == [str(node) for node in range(60)]


def test_a_recipe_for_graphs_says_what_nodes_need(command, store, tmp_path):
    said = command("train", "zinc", f"dataset={store}", "model.pairs=edges", "--run", tmp_path / "run", code=2)
    assert "node-level predictions go with pooling none" in said


def test_the_store_is_described(command, store):
    said = command("datasets", store)
    assert "train: 15 nodes of 1 graph" in said
    assert f"Next: grit train own-nodes dataset={store}" in said
