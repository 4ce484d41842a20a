"""A trained run on labelled tables: figures beside scikit-learn's, saved predictions, and what is said of bad rows."""

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import grit
from grit.cli import app
from grit.errors import GritError
from grit.training.run_folder import RunFolder

SMALL = ("encoding.walk_steps=4", "model.num_layers=1", "model.hidden_dim=8", "model.num_heads=2", "train.epochs=2")
MOLECULES = ["C" * (k % 12 + 1) + "ON"[k % 2] for k in range(60)]


def write(path, header, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def run_command(*arguments):
    done = CliRunner().invoke(app, [str(each) for each in arguments])
    assert done.exit_code == 0, done.output
    return done.output


def message_of(*arguments):
    done = CliRunner().invoke(app, [str(each) for each in arguments])
    assert isinstance(done.exception, GritError), done.output
    return str(done.exception)


def read(path):
    with Path(path).open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("evaluate")
    rows = [
        [smiles, len(smiles) + k / 100, k % 7, "yes" if k % 2 else "no", k % 2, "" if k % 3 == 0 else int(k % 4 == 0)]
        for k, smiles in enumerate(MOLECULES)
    ]
    table = write(path / "t.csv", ["smiles", "size", "other", "active", "a", "b"], rows)
    for name, targets in {"one": ["size"], "two": ["size", "other"], "class": ["active"], "labels": ["a", "b"]}.items():
        options = [text for target in targets for text in ("--target", target)]
        run_command(
            "fit", table, *options, "--run", path / name, "--split", "random", "--preset", "fast", "--no-forest", *SMALL
        )
    return path


def test_a_table_is_measured_and_its_predictions_saved(folder):
    rows = [
        ["CCO", 3.5, "x"],
        ["CCCCN", "", "y"],
        ["C(", 2.0, "z"],
        ["CCC", "much", "w"],
        *[[s, 4.0, ""] for s in MOLECULES[:12]],
    ]
    table = write(folder / "new.csv", ["smiles", "size", "name"], rows)
    said = run_command("evaluate", folder / "one" / "model", table)
    place = folder / "one-new-predictions.csv"
    assert f"Predictions beside the truth: {place}" in said.replace("\n", "")
    assert "13 predictions, 3 rows could not be measured" in said
    saved = read(place)
    assert [int(row["row"]) for row in saved] == list(range(16))
    assert saved[0]["smiles"] == "CCO"
    assert "no target has a value" in saved[1]["note"]
    assert saved[2]["note"]
    assert "expected a number" in saved[3]["note"]
    used = [row for row in saved if not row["note"]]
    errors = [abs(float(row["size"]) - float(row["size_pred"])) for row in used]
    found = json.loads(run_command("evaluate", folder / "one" / "model", table, "--json"))
    assert found["metrics"]["mae"] == pytest.approx(np.mean(errors), rel=1e-4)
    assert found["rows"] == 13
    assert found["unused"] == 3
    assert found["unfinished"] is None
    ends = found["targets"]["size"]["mae"]
    assert ends["low"] < ends["value"] < ends["high"]
    expected = grit.load(folder / "one" / "model").predict(["CCO"])
    assert float(saved[0]["size_pred"]) == pytest.approx(float(expected[0, 0]), rel=1e-5)


def test_classes_by_their_names(folder):
    from sklearn.metrics import balanced_accuracy_score, roc_auc_score

    found = json.loads(
        run_command("evaluate", folder / "class" / "model", folder / "t.csv", "--json", "-o", folder / "mine.csv")
    )
    saved = read(folder / "mine.csv")
    assert found["predictions"] == str(folder / "mine.csv")
    truth, chance = [row["active"] == "yes" for row in saved], [float(row["active_prob"]) for row in saved]
    assert found["metrics"]["auroc"] == pytest.approx(roc_auc_score(truth, chance), abs=1e-6)
    guess = [row["active_pred"] == "yes" for row in saved]
    assert found["metrics"]["balanced-accuracy"] == pytest.approx(balanced_accuracy_score(truth, guess))
    assert "accuracy-sbm" not in found["metrics"]
    table = write(folder / "odd.csv", ["smiles", "active"], [["CCO", "perhaps"]])
    told = message_of("evaluate", folder / "class" / "model", table)
    assert (
        "no row that can be measured (1 rows). The first, line 2: active is 'perhaps', expected one of no, yes" in told
    )


@pytest.mark.parametrize(("name", "targets"), [("two", ["size", "other"]), ("labels", ["a", "b"])])
def test_each_target_and_all_of_them(folder, name, targets):
    said = run_command("evaluate", folder / name / "model", folder / "t.csv")
    assert [line.split()[0] for line in said.splitlines() if line.split()[0] in targets] == targets
    assert "all targets" in said
    found = json.loads(run_command("evaluate", folder / name / "model", folder / "t.csv", "--json"))
    assert [found["targets"][each]["labels"] for each in targets] == ([60, 60] if name == "two" else [60, 40])
    metric = "r2" if name == "two" else "auroc"
    values = [found["targets"][each][metric]["value"] for each in targets]
    assert found["metrics"][metric] == pytest.approx(np.mean(values))


def test_a_target_without_a_column_is_named(folder):
    table = write(folder / "half.csv", ["smiles", "size"], [[each, 3.0] for each in MOLECULES[:12]])
    said = run_command("evaluate", folder / "two" / "model", table)
    assert "No column of other, so that these are not measured." in said
    assert "not defined" in said
    table = write(folder / "none.csv", ["smiles", "weight"], [["CCO", 3.0]])
    told = message_of("evaluate", folder / "two" / "model", table)
    assert "no labels: the run predicts 'size', 'other', and there is no such column" in told
    assert "weight" in told


def test_the_runs_own_test_rows(folder):
    result = RunFolder(folder / "one" / "model").result()
    found = json.loads(run_command("evaluate", folder / "one" / "model", "--json"))
    assert found["metrics"]["mae"] == pytest.approx(result["test"]["mae"], rel=1e-5)
    assert found["data"] == "test split"
    saved = read(folder / "one-test-predictions.csv")
    for row in saved:
        number = int(row["row"])
        assert float(row["size"]) == pytest.approx(len(MOLECULES[number]) + number / 100)


def test_few_labels_have_no_interval(folder):
    table = write(folder / "few.csv", ["smiles", "size"], [["CCO", 3.0], ["CCCO", 4.0]])
    assert "No intervals: they need 10 labels at least." in run_command("evaluate", folder / "one" / "model", table)
    found = json.loads(run_command("evaluate", folder / "one" / "model", table, "--json"))
    assert found["average"]["mae"]["low"] is None
    assert not math.isnan(found["metrics"]["mae"])


def test_an_unfinished_run_is_named(folder, tmp_path):
    import shutil

    run = tmp_path / "stopped"
    shutil.copytree(folder / "one" / "model", run)
    (run / "result.json").unlink()
    lines = (run / "metrics.jsonl").read_text().splitlines(keepends=True)
    (run / "metrics.jsonl").write_text(lines[0])
    said = run_command("evaluate", run, folder / "t.csv").replace("\n", " ")
    assert "is not finished: 1 of 2 epochs; the best weights so far are used" in said
    assert "1 of 2 epochs" in json.loads(run_command("evaluate", run, folder / "t.csv", "--json"))["unfinished"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("t.csv", "--split", "val"), "leave out --split and --data"),
        (("t.csv", "--data", "zinc"), "leave out --split and --data"),
        (("--smiles", "smiles"), "no FILE is given"),
        (("t.csv", "-o", "absent/p.csv"), "Name another file with -o"),
        (("t.csv", "-o", "t.csv"), "is the table to measure"),
        (("absent.csv",), "absent.csv"),
    ],
)
def test_what_cannot_be(folder, monkeypatch, options, said):
    monkeypatch.chdir(folder)
    before = (folder / "t.csv").read_bytes()
    assert said in message_of("evaluate", "one/model", *options)
    assert (folder / "t.csv").read_bytes() == before


def test_a_fit_is_compared_with_simple_predictors_by_a_paired_test(folder):
    options = ("--target", "size", "--split", "random", "--preset", "fast", "--run", folder / "compared")
    rows = [[smiles + "C" * (k // 60), len(smiles) + k / 100] for k, smiles in enumerate(MOLECULES * 2)]
    said = run_command("fit", write(folder / "many.csv", ["smiles", "size"], rows), *options, *SMALL)
    found = json.loads((folder / "compared" / "comparison.json").read_text())["tested"]
    assert {"constant", "forest", "forest-descriptors"} <= found.keys()
    model = json.loads(run_command("evaluate", folder / "compared" / "model", "--json"))["metrics"]["mae"]
    for row in found.values():
        ahead = row["model_minus_this"]
        assert ahead["value"] == pytest.approx(model - row["average"]["mae"]["value"], abs=1e-4)
        assert f"{row['title']}: mae {row['average']['mae']['value']:.4f}" in said
        assert f"p = {ahead['p']:.2g}" in said
