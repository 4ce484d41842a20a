"""Fits that read numbers beside the graph: from a table to predictions of another one."""

import csv

import numpy as np
import pytest

pytest.importorskip("rdkit")

from grit.datasets.own.molecule_tables import MoleculeTable
from grit.errors import GritError
from grit.training.fit import fit
from grit.training.predict_table import predict_table
from grit.training.predictor import load
from grit.training.train import RunOptions
from tests.training.small import SMALL

SMILES = ["C" * carbons + end for carbons in range(1, 13) for end in ("O", "N", "Cl", "F", "C#N")]
LAST = "model/checkpoints/last.safetensors"
PARTS = ("train", "train", "train", "val", "test")


def write(path, header, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def measured(path):
    """The target is what the column says, and has nothing to do with the molecule."""
    rng = np.random.default_rng(0)
    values = rng.normal(300, 20, len(SMILES))
    rows = [(s, f"{v / 10:.3f}", f"{v:.2f}", PARTS[k % 5]) for k, (s, v) in enumerate(zip(SMILES, values, strict=True))]
    return write(path, ("smiles", "y", "temp", "part"), rows)


def fitted(table, run, *, resume=False, epochs=1, **inputs):
    return fit(
        MoleculeTable(table, targets="y", split="column:part", **inputs),
        run,
        preset="fast",
        overrides=[*SMALL, f"train.epochs={epochs}", "train.lr=1e-2", "train.patience=99", "model.hidden_dim=16"],
        resume=resume,
        options=RunOptions(device="cpu"),
        with_forest=False,
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fits")
    table = measured(folder / "a.csv")
    result = fitted(table, folder / "run", features=["temp"], epochs=60)
    return result, folder / "run" / "model", table


def test_what_the_column_says_is_learned(run, tmp_path):
    result, _, table = run
    blind = fitted(table, tmp_path / "blind", epochs=60)
    assert result.result["test"]["mae"] < 0.2 * blind.result["test"]["mae"]


class TestPredictions:
    def test_a_table_needs_the_same_columns(self, run, tmp_path):
        table = write(tmp_path / "new.csv", ("smiles", "other"), [("CCO", "1")])
        with pytest.raises(
            GritError, match="reads the columns 'temp' beside the SMILES, and .* has no 'temp'; there are smi"
        ):
            predict_table(load(run[1]), table, tmp_path / "out.csv")
        assert not (tmp_path / "out.csv").exists()

    def test_every_row_is_accounted_for(self, run, tmp_path):
        rows = [("CCO", "300"), ("CCO", "360"), ("CCO", ""), ("CCO", "warm"), ("C(", "300")]
        table = write(tmp_path / "new.csv", ("smiles", "temp"), rows)
        assert predict_table(load(run[1]), table, tmp_path / "out.csv", processes=1) == (5, 2)
        found = rows_of(tmp_path / "out.csv")
        cold, warm, unknown = (float(row["y_pred"]) for row in found[:3])
        assert 29 < cold < 31
        assert 33 < warm < 38
        assert 29 < unknown < 31
        assert [row["note"] for row in found[:3]] == [
            *("", ""),
            "temp: blank, the mean of the training molecules was used",
        ]
        assert found[3]["y_pred"] == ""
        assert found[3]["note"] == "temp is 'warm', expected a number (or a blank, if it is not known)"
        assert found[4]["y_pred"] == ""

    def test_the_table_of_training_gives_what_the_store_gives(self, run, tmp_path):
        from grit.graphs.store import GraphStore

        _, model, table = run
        predict_table(load(model), table, tmp_path / "out.csv", processes=1)
        outputs, _ = load(model).predict_store(GraphStore.open(model.parent / "data"))
        np.testing.assert_allclose(
            [float(row["y_pred"]) for row in rows_of(tmp_path / "out.csv")], outputs[:, 0], rtol=1e-4
        )

    def test_smiles_alone_do_not_suffice(self, run):
        with pytest.raises(GritError, match="reads 'temp' of each molecule, too, which SMILES alone do not say"):
            load(run[1]).predict(["CCO"])

    def test_descriptors_alone_come_from_the_smiles(self, run, tmp_path):
        fitted(run[2], tmp_path / "run", descriptors=["morgan"])
        assert np.isfinite(load(tmp_path / "run" / "model").predict(["CCO", "c1ccccc1"])).all()


class TestGoingOn:
    @pytest.mark.parametrize(
        "others", [{}, {"descriptors": ["rdkit"]}, {"features": ["temp"], "descriptors": ["morgan"]}]
    )
    def test_with_other_inputs_is_refused(self, run, others):
        with pytest.raises(GritError, match="begun with another choice of features or descriptors"):
            fitted(run[2], run[1].parent, resume=True, epochs=60, **others)

    def test_with_the_same_gives_the_result(self, run):
        again = fitted(run[2], run[1].parent, resume=True, epochs=60, features=["temp"])
        assert again.result == run[0].result


class TestWeights:
    def test_rows_of_no_weight_teach_nothing(self, tmp_path):
        """Half of the rows say 10, the others 20, and only these count."""
        rows = [(s, f"{10 * (k // 5 % 2 + 1)}.5", k // 5 % 2, PARTS[k % 5]) for k, s in enumerate(SMILES)]
        table = write(tmp_path / "a.csv", ("smiles", "y", "w", "part"), rows)
        fitted(table, tmp_path / "run", weights="w", epochs=25)
        predicted = load(tmp_path / "run" / LAST).predict(SMILES)  # the best epoch is chosen by all rows
        assert abs(np.median(predicted) - 20.5) < 2.5

    def test_rare_classes_are_found(self, tmp_path):
        """Nothing about a molecule tells its class: without balance all have a low chance, with it about a half."""
        rng = np.random.default_rng(0)
        rows = [(s, int(rng.random() < 0.15), PARTS[k % 5]) for k, s in enumerate(SMILES)]
        table = write(tmp_path / "a.csv", ("smiles", "y", "part"), rows)
        mean = {}
        for balance in ("false", "true"):
            said = []
            fit(
                MoleculeTable(table, targets="y", split="column:part"),
                tmp_path / balance,
                preset="fast",
                overrides=[*SMALL, "train.epochs=25", "train.lr=1e-2", "train.patience=99", f"train.balance={balance}"],
                options=RunOptions(device="cpu"),
                with_forest=False,
                say=said.append,
            )
            assert any("by their rarity" in line for line in said) == (balance == "true")
            mean[balance] = float(np.mean(load(tmp_path / balance / LAST).predict(SMILES)))
        assert mean["false"] < 0.3 < mean["true"]

    def test_going_on_without_them_is_refused(self, tmp_path):
        rows = [(s, f"{k}.5", 1, PARTS[k % 5]) for k, s in enumerate(SMILES)]
        table = write(tmp_path / "a.csv", ("smiles", "y", "w", "part"), rows)
        fitted(table, tmp_path / "run", weights="w")
        with pytest.raises(GritError, match="begun with another choice of weights"):
            fitted(table, tmp_path / "run", resume=True)
