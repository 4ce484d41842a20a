"""RDKit's descriptors: the list, their values against RDKit's own functions, and molecules that RDKit has no value for."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grit.datasets.molecules.descriptors import LARGEST, RDKIT_DESCRIPTORS, rdkit_descriptors
from grit.datasets.molecules.smiles import read_smiles
from grit.errors import GritError

Descriptors = pytest.importorskip("rdkit.Chem.Descriptors")

ASPIRIN = "CC(=O)Oc1ccccc1C(=O)O"
FRAGMENTS = ["C", "CC", "c1ccccc1", "[Na+]", "[Cl-]", "*", "[H][H]", "[Fe+2]", "O", "C#N", "[13CH4]", "B1OB1", "[U]"]


def named(smiles: str) -> dict[str, float]:
    return dict(zip(RDKIT_DESCRIPTORS, rdkit_descriptors(smiles).tolist(), strict=True))


def test_the_list_is_that_of_rdkit_but_for_two_that_cost_too_much() -> None:
    assert list(RDKIT_DESCRIPTORS) == sorted({name for name, _ in Descriptors.descList} - {"Ipc", "AvgIpc"})


def test_values_are_those_of_rdkits_own_functions() -> None:
    from rdkit.Chem import Crippen, rdMolDescriptors

    molecule = read_smiles(ASPIRIN)
    values = named(ASPIRIN)
    assert values["MolLogP"] == pytest.approx(Crippen.MolLogP(molecule))
    assert values["TPSA"] == pytest.approx(rdMolDescriptors.CalcTPSA(molecule))
    assert values["MolWt"] == pytest.approx(180.16, abs=0.01)
    assert (values["HeavyAtomCount"], values["NumAromaticRings"], values["fr_COO"]) == (13, 1, 1)


def test_a_molecule_is_left_as_it_is() -> None:
    molecule = read_smiles(ASPIRIN)
    values = rdkit_descriptors(molecule)
    assert not molecule.GetAtomWithIdx(0).HasProp("_GasteigerCharge")
    assert values.dtype == np.float64
    assert np.array_equal(values, rdkit_descriptors(ASPIRIN), equal_nan=True)


def test_what_rdkit_has_no_value_for_is_missing() -> None:
    values = named("[Na+].[Cl-]")
    assert np.isnan(values["BCUT2D_MWHI"])
    assert values["MolWt"] == pytest.approx(58.44, abs=0.01)


def test_a_large_molecule_takes_seconds_and_stays_within_bounds() -> None:
    values = rdkit_descriptors("C1CC2CC1CC2" * 40)
    assert np.nanmax(np.abs(values)) <= LARGEST


def test_an_unreadable_smiles_is_named() -> None:
    with pytest.raises(GritError, match="not valid SMILES"):
        rdkit_descriptors("C1CC")


@given(st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=4))
def test_every_molecule_has_finite_or_missing_values(parts: list[str]) -> None:
    values = rdkit_descriptors(".".join(parts))
    assert values.shape == (len(RDKIT_DESCRIPTORS),)
    assert not np.isinf(values).any()
    assert np.nanmax(np.abs(values)) <= LARGEST


def test_importing_the_list_does_not_import_rdkit() -> None:
    code = "import sys, grit.datasets.molecules.descriptors; sys.exit('rdkit' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
