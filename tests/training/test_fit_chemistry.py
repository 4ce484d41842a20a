"""A fit says what its molecules are, keeps it in fit.json, and treats new molecules as it treated those of the table."""

import csv
import json

import numpy as np
import pytest

pytest.importorskip("rdkit")

import grit
from grit.datasets.own.molecule_tables import MoleculeTable
from grit.training.fit import fit as fit_table
from grit.training.train import RunOptions
from tests.training.small import SMALL

ROWS = [f"{'C' * number}C(=O)O,{number}.5" for number in range(1, 21)]
ROWS += ["CC(=O)[O-].[Na+],2", "CCC(=O)[O-].[K+],1", "C(,1"]  # lines 22 to 24; the second is the acid of line 3


def fit(folder, **options):
    path, said = folder / "t.csv", []
    path.write_text("\n".join(["smiles,y", *ROWS]) + "\n")
    how = {"resume": options.pop("resume", False), "with_forest": options.pop("with_forest", False)}
    result = fit_table(
        MoleculeTable(path, targets="y", **options),
        folder / "run",
        preset="fast",
        overrides=[*SMALL, "train.epochs=1"],
        options=RunOptions(device="cpu"),
        say=said.append,
        **how,
    )
    return result, " ".join(said), json.loads((folder / "run" / "fit.json").read_text())


def test_what_is_known_of_the_data_is_said_again_and_kept(tmp_path):
    _, said, record = fit(tmp_path)
    assert [note["kind"] for note in record["notes"]] == ["salt", "absent"]
    for note in record["notes"]:
        assert note["text"] in said
    assert "1 rows could not be used" in said
    _, again, record = fit(tmp_path, resume=True)
    for note in record["notes"]:
        assert note["text"] in again


def test_merged_rows_are_not_called_unusable(tmp_path):
    result, said, record = fit(tmp_path, standardise="parent", duplicates="merge")
    assert (record["asked"]["standardise"], record["asked"]["duplicates"]) == ("parent", "merge")
    assert {"salt", "duplicates"} <= {note["kind"] for note in record["notes"]}
    assert "2 of 22 molecules are salts or solvates" in said
    assert "1 rows could not be used" in said
    assert "2 rows were left out as duplicates" in said
    assert result.skipped == 3
    with (tmp_path / "run" / "data" / "skipped.csv").open() as file:
        reasons = {int(row["line"]): row["reason"] for row in csv.DictReader(file)}
    assert reasons.keys() == {22, 23, 24}
    assert reasons[23].startswith("identical to line 3, with which it is merged")


@pytest.mark.parametrize("changed", [{"standardise": "parent"}, {"duplicates": "merge"}])
def test_resuming_with_other_chemistry_is_refused(tmp_path, changed):
    fit(tmp_path)
    with pytest.raises(grit.GritError, match=f"was begun with another {next(iter(changed))}"):
        fit(tmp_path, resume=True, **changed)


def test_a_predictor_standardises_as_the_fit_did(tmp_path):
    fit(tmp_path, standardise="parent")
    salt, acid = grit.load(tmp_path / "run").predict(["CCCC(=O)[O-].[Na+]", "CCCC(=O)O"])
    assert np.array_equal(salt, acid)


def test_simple_predictors_see_the_standardised_molecules(tmp_path):
    fit(tmp_path, standardise="parent", with_forest=True)
    kept = np.load(tmp_path / "run" / "descriptors.npy")
    assert np.array_equal(kept[1], kept[21], equal_nan=True)  # the acid of line 3, and its salt of line 23
