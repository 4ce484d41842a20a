"""Molecules as MDL mol blocks, the molecules of an SDF."""

from textwrap import shorten
from typing import TYPE_CHECKING

from grit.datasets.molecules.smiles import check_cost, rdkit_module, read_smiles
from grit.errors import GritError

if TYPE_CHECKING:
    from rdkit.Chem import Mol

EMPTY_MOL_BLOCK = "\n  grit\n\n  0  0  0  0  0  0  0  0  0  0999 V2000\nM  END\n"


def smiles_of_mol_block(block: str) -> str:
    """The canonical SMILES of a mol block, with its stereochemistry, or a `GritError` that says why there is none."""
    chem = rdkit_module("Chem")
    with rdkit_module("rdBase").BlockLogs():
        try:
            molecule: Mol | None = chem.MolFromMolBlock(block, sanitize=False, removeHs=False)
            if molecule is not None:
                check_cost(molecule)
                molecule = chem.MolFromMolBlock(block)
        except GritError:
            raise
        except (RuntimeError, ValueError) as error:  # a failed check inside RDKit, or text that it cannot take
            raise GritError(f"not a mol block: {shorten(str(error), width=100)}") from None
        if molecule is None:
            raise GritError("not a mol block that RDKit can read, or not a possible molecule")
        if molecule.GetNumAtoms() == 0:
            raise GritError("no atoms")
        return str(chem.MolToSmiles(molecule))


def mol_block_of(smiles: str) -> str:
    """A mol block with coordinates in the plane; one without atoms if the SMILES cannot be read."""
    try:
        molecule = read_smiles(smiles)
    except GritError:
        return EMPTY_MOL_BLOCK
    chem = rdkit_module("Chem")
    with rdkit_module("rdBase").BlockLogs():
        rdkit_module("Chem.rdDepictor").Compute2DCoords(molecule)
        return str(chem.MolToMolBlock(molecule, forceV3000=molecule.GetNumAtoms() > 900))
