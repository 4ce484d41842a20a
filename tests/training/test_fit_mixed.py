"""Numbers and classes predicted by one model: from a table to predictions of another one."""

import csv
import json

import numpy as np
import pytest

pytest.importorskip("rdkit")

from grit.datasets import from_csv
from grit.datasets.own.molecule_tables import MoleculeTable
from grit.datasets.own.task_inference import ColumnFacts, infer_targets
from grit.errors import GritError
from grit.graphs.store import GraphStore
from grit.training.fit import fit
from grit.training.predict_table import predict_table
from grit.training.predictor import load
from grit.training.train import RunOptions
from tests.training.small import SMALL

SMILES = ["C" * carbons + end for carbons in range(1, 13) for end in ("O", "N", "Cl", "F", "C#N")]
KINDS = ("alcohol", "amine", "halide", "halide", "nitrile")
TARGETS = ["size", "group", "big"]


def write(path, rows=SMILES):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["smiles", *TARGETS])
        for k, smiles in enumerate(rows):
            size = smiles.count("C") + 0.5
            writer.writerow([smiles, "" if k == 3 else size, "" if k == 4 else KINDS[k % 5], int(size > 6)])
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mixed")
    said = []
    found = fit(
        MoleculeTable(write(folder / "a.csv"), targets=TARGETS, split="random"),
        folder / "run",
        preset="fast",
        overrides=[*SMALL, "train.epochs=40", "train.lr=1e-2", "train.patience=99", "model.hidden_dim=16"],
        options=RunOptions(device="cpu"),
        say=said.append,
    )
    return found, folder / "run", said


def facts(name, *cells):
    column = ColumnFacts(name)
    for cell in cells:
        column.see(cell)
    return column


class TestInference:
    def test_each_column_is_decided_by_itself_and_said(self, run):
        (told,) = [line for line in run[2] if line.startswith("SMILES from")]
        assert "mixed of size, group, big" in told
        assert "size: regression, its values are numbers" in told
        assert "group: multiclass, it holds 4 different words" in told
        assert "big: binary, all values are 0 or 1" in told

    def test_columns_of_one_kind_are_what_they_were(self):
        numbers, labels = facts("n", "0.5", "2.5", "7"), facts("l", "0", "1")
        assert infer_targets([numbers, facts("m", "1.5", "2")]).task.kind == "regression"
        assert infer_targets([labels, facts("k", "1", "0")]).task.kind == "multilabel"
        both = infer_targets([numbers, labels])
        assert both.task.kind == "regression"
        assert "with --task mixed l, of two whole numbers alone, would be classes" in both.why
        asked = infer_targets([numbers, labels], "mixed").task
        assert [part.kind for part in asked.parts] == ["regression", "binary"]

    def test_a_single_target_is_of_one_kind(self):
        with pytest.raises(GritError, match="mixed is for several targets of different kinds; there is only 'n'"):
            infer_targets([facts("n", "0.5")], "mixed")

    def test_cells_are_read_by_their_own_column(self):
        targets = infer_targets([facts("n", "0.5", "2.5"), facts("c", "red", "blue", "red")])
        assert targets.parse(["3", "red"]) == ((3.0, 1.0), None)
        assert targets.parse(["red", "red"])[1] == "n is 'red', expected a number"
        assert targets.parse(["1", "green"])[1] == "c is 'green', expected one of blue, red"
        assert targets.parse(["", "blue"])[0][1] == 0.0


class TestFit:
    def test_every_kind_is_learned_and_measured(self, run):
        test = run[0].result["test"]
        assert {"mae", "rmse", "r2", "auroc", "accuracy", "skill"} <= set(test)
        assert run[0].result["metric"] == "skill"
        assert test["skill"] > 0.3
        assert test["mae"] < 0.5 * run[0].comparison.constant["mae"]
        assert test["auroc"] > 0.8
        assert run[0].comparison.constant["skill"] < 0.1
        assert run[0].comparison.forest["mae"] > 0

    def test_predictions_have_the_columns_of_each_kind(self, run, tmp_path):
        predictor = load(run[1] / "model")
        new = write(tmp_path / "new.csv", ["CCO", "C(", "CCCCCCCCCl"])
        assert predict_table(predictor, new, tmp_path / "out.csv", processes=1) == (3, 1)
        with (tmp_path / "out.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        chances = [f"group_prob_{name}" for name in ("alcohol", "amine", "halide", "nitrile")]
        assert list(rows[0])[4:] == ["size_pred", "group_pred", *chances, "big_pred", "big_prob", "note"]
        outputs = predictor.predict(["CCO", "CCCCCCCCCl"])
        for row, wanted in zip((rows[0], rows[2]), outputs, strict=True):
            assert float(row["size_pred"]) == pytest.approx(wanted[0], rel=1e-4)
            assert [float(row[name]) for name in chances] == pytest.approx(wanted[1:5], rel=1e-4)
            assert row["group_pred"] == chances[int(wanted[1:5].argmax())].removeprefix("group_prob_")
            assert row["big_pred"] == str(int(wanted[5] > 0.5))
        assert [rows[1][name] for name in ("size_pred", "group_pred", "big_pred")] == ["", "", ""]

    def test_the_store_says_so_and_older_versions_do_not_open_it(self, run):
        manifest = json.loads((run[1] / "data" / "manifest.json").read_text())
        assert manifest["version"] == 4
        assert [part["kind"] for part in manifest["task"]["parts"]] == ["regression", "multiclass", "binary"]
        store = GraphStore.open(run[1] / "data")
        store.verify()
        outputs, targets = load(run[1] / "model").predict_store(store, "test")
        assert outputs.shape[1] == store.schema.num_outputs == 6
        assert targets.shape[1] == 3

    def test_what_is_for_one_kind_is_refused(self, run, tmp_path):
        from grit.export.export import export

        predictor = load(run[1] / "model")
        with pytest.raises(GritError, match="predict_classes is for"):
            predictor.predict_classes(["CCO"])
        with pytest.raises(GritError, match="several kinds cannot be exported"):
            export(predictor, tmp_path / "model.pt2")
        store = from_csv(write(tmp_path / "a.csv"), targets=TARGETS)
        from grit.recipe.presets import preset_recipe
        from grit.training.train import train

        with pytest.raises(GritError, match="have a loss each"):
            train(preset_recipe("fast", store.schema, "train.loss=l1"), tmp_path / "run", store=store)

    def test_constants_are_those_of_each(self, run):
        from grit.training.forest import constant_outputs

        store = GraphStore.open(run[1] / "data")
        targets = store.targets(store.split("train")).astype(np.float64)
        found = constant_outputs(store.task, targets, 2)
        assert found[0, 0] == pytest.approx(np.nanmean(targets[:, 0]))
        assert found[1, 1:5].sum() == pytest.approx(1.0)
        assert found[1, 5] == pytest.approx(np.nanmean(targets[:, 2]))


def test_a_labelled_table_is_evaluated(run, tmp_path):
    from grit.training.evaluate_run import evaluate_table, write_evaluated

    table = write(tmp_path / "new.csv")
    found = evaluate_table(load(run[1]), table, processes=1)
    assert found.outputs.shape == (60, 6)
    write_evaluated(tmp_path / "out.csv", found)
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["group"] for row in rows[:5]] == ["alcohol", "amine", "halide", "halide", ""]
    assert rows[0]["size"] == "1.5"
    assert rows[0]["big"] == "0"
