"""Parents of salts, which molecules are the same, and what a record of several parts is."""

import pytest

import grit
from grit.datasets.molecules import standardise
from grit.datasets.molecules.featurisers import FEATURISERS, own_featuriser
from grit.datasets.molecules.smiles import read_smiles
from grit.datasets.molecules.standardise import canonical_smiles, identity, kind_of_record, parent_molecule


@pytest.mark.parametrize(
    ("smiles", "parent"),
    [
        ("CC(=O)[O-].[Na+]", "CC(=O)O"),
        ("CCN.Cl", "CCN"),
        ("CC[NH3+].[Cl-]", "CCN"),
        ("CCO.O", "CCO"),
        ("C[N+](C)(C)C.[Cl-]", "C[N+](C)(C)C"),  # a charge that no hydrogen can take away stays
        ("CC(=O)O[Na]", "CC(=O)O"),  # a bond that is none
        ("CN(=O)=O", "C[N+](=O)[O-]"),  # one way to draw a nitro group
        ("C[C@H](N)C(=O)[O-]", "C[C@H](N)C(=O)O"),  # stereo stays
        ("CCO", "CCO"),
        ("[Na+].[Cl-]", "Cl"),
        ("C", "C"),
    ],
)
def test_the_parent(smiles, parent):
    assert canonical_smiles(parent_molecule(smiles)) == canonical_smiles(parent)


def test_a_molecule_is_left_as_it_is():
    molecule = read_smiles("CC(=O)[O-].[Na+]")
    parent_molecule(molecule)
    assert canonical_smiles(molecule) == canonical_smiles("CC(=O)[O-].[Na+]")


def test_the_parent_of_a_parent_is_itself():
    for smiles in ("CC(=O)[O-].[Na+]", "c1ccccc1[NH3+].[Br-]", "OC(=O)CC(=O)[O-].[K+]"):
        once = parent_molecule(smiles)
        assert identity(parent_molecule(once)) == identity(once)


def test_what_rdkit_cannot_standardise_has_a_reason(monkeypatch):
    def fail(molecule):
        raise RuntimeError("inside RDKit")

    from rdkit.Chem.MolStandardize import rdMolStandardize

    monkeypatch.setattr(rdMolStandardize, "ChargeParent", fail)
    with pytest.raises(grit.GritError, match="RDKit cannot standardise it; --standardise none leaves it as it is"):
        parent_molecule("CCO")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("CCO", "OCC", True),
        ("c1ccccc1", "C1=CC=CC=C1", True),
        ("[CH3:1][OH:2]", "CO", True),
        ("CCO.Cl", "Cl.OCC", True),
        ("C[C@H](N)O", "C[C@@H](N)O", False),
        ("C/C=C/C", r"C/C=C\C", False),
        ("CC(=O)O", "CC(=O)[O-]", False),
        ("[2H]C", "C", False),
    ],
)
def test_which_molecules_are_the_same(one, other, same):
    assert (identity(one) == identity(other)) is same


@pytest.mark.parametrize(
    ("smiles", "kind"),
    [
        ("CCO", ""),
        ("CC(=O)[O-].[Na+]", "salt"),
        ("CCN.Cl", "salt"),
        ("CCO.O", "salt"),
        ("CCCCCCCN.CCCCCCO", "mixture"),
        ("[Na+].[Cl-]", "salt"),
        ("CC[Hg]Cl", "metal"),
        ("[Pt](Cl)Cl", "metal"),
        ("CC(=O)O[Na]", "metal"),
        ("C[Si](C)(C)C", ""),
        ("OB(O)c1ccccc1", ""),
    ],
)
def test_what_a_record_is(smiles, kind):
    assert kind_of_record(read_smiles(smiles)) == kind


def test_every_way_to_standardise_has_a_featuriser():
    for name in standardise.STANDARDISATIONS:
        assert own_featuriser(name) in FEATURISERS
    with pytest.raises(grit.GritError, match="standardise must be none or parent, got 'all'"):
        own_featuriser("all")


def test_graphs_are_of_the_parent():
    salt, acid = FEATURISERS["ogb-parent"]("CC(=O)[O-].[Na+]"), FEATURISERS["ogb"]("CC(=O)O")
    assert salt.x.tolist() == acid.x.tolist()
    assert FEATURISERS["ogb"]("CC(=O)[O-].[Na+]").x.shape[0] == 5
