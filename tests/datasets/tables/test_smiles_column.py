import pytest

import grit
from grit.datasets.tables.formats import open_table
from grit.datasets.tables.smiles_column import smiles_column


def column(tmp_path, header):
    (tmp_path / "t.csv").write_text(f"{header}\n")
    return smiles_column(open_table(tmp_path / "t.csv"))


@pytest.mark.parametrize(
    "name",
    [
        "smiles",
        "SMILES",
        "Structure",
        "Smiles String",
        "canonical smiles",
        "Canonical_SMILES",
        "isomeric_smiles",
        "Isomeric.SMILES",
        "mol_smiles",
        "PUBCHEM_OPENEYE_CAN_SMILES",
        "smiles (parent)",
        "Mol",
        "molecule",
    ],
)
def test_names_of_columns_with_smiles(tmp_path, name):
    assert column(tmp_path, f"id,{name},y") == (name, None)


@pytest.mark.parametrize("name", ["id", "smilesy", "structures", "molecular weight", "MolWt"])
def test_names_that_mean_something_else(tmp_path, name):
    with pytest.raises(
        grit.GritError,
        match="no column called smiles. Name the one that holds them with --smiles, as in --smiles .*; there are",
    ):
        column(tmp_path, f"{name},y")


@pytest.mark.parametrize(
    ("header", "taken", "others"),
    [
        ("mol,smiles", "smiles", "mol"),
        ("Structure,y,canonical_smiles", "canonical_smiles", "Structure"),
        ("SMILES,smiles", "SMILES", "smiles"),
        ("raw smiles,mol,x", "mol", "raw smiles"),
    ],
)
def test_of_several_the_surest_is_taken_and_the_others_are_named(tmp_path, header, taken, others):
    found = column(tmp_path, header)
    assert found.name == taken
    assert found.note == f"SMILES are taken from the column {taken!r}, not from {others}; --smiles names another."


def test_an_absent_column_is_told_with_the_options_that_name_it(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n")
    with pytest.raises(grit.GritError, match="has no column 'x'; there are a, b. .*--smiles.*--target"):
        open_table(tmp_path / "t.csv", ["x"])
