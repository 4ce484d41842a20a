"""Which molecules are the same, what a record of several parts is, and the parent of a salt.

A record of a table may hold more than the molecule that was measured: counter-ions, solvents, a second substance.
`parent_molecule` takes the largest part in its neutral form, by RDKit's standardiser. `kind_of_record` says what there is.
`identity` is the same for two records of one structure, however they are written.
"""

import hashlib
import importlib
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from grit.datasets.molecules.smiles import read_smiles
from grit.errors import GritError

if TYPE_CHECKING:
    from rdkit.Chem import Mol

RecordKind = Literal["", "salt", "mixture", "metal"]
STANDARDISATIONS = ("none", "parent")
"""What ``--standardise`` can be: molecules as they are written, or the neutral form of their largest part."""

# Everything but hydrogen, the noble gases, and what is bound in organic molecules: B C N O F, Si P S Cl, Ge As Se Br, Te I, At.
_NOT_METALS = frozenset({0, 1, 2, *range(5, 11), *range(14, 19), *range(32, 37), *range(52, 55), 85, 86})
_PLAIN_IONS = frozenset(
    {3, 11, 12, 19, 20, 37, 55}
)  # Li, Na, Mg, K, Ca, Rb, Cs beside an acid make a salt like any other


def parent_molecule(molecule: "str | Mol") -> "Mol":
    """The largest part of a molecule in its neutral form, as `read_smiles` would read it: sodium acetate gives acetic acid.

    RDKit's standardiser (`rdMolStandardize`) separates metals that are written as if they were bound, draws groups such as
    nitro in one way, takes the part with the most atoms, and adds or removes hydrogens until no charge is left that can go.

    Args:
        molecule: SMILES, or what `read_smiles` gives; it is left as it is. Its size is limited there, which limits the cost.
    """
    parsed = read_smiles(molecule) if isinstance(molecule, str) else molecule
    chem, block = _rdkit("Chem"), _rdkit("rdBase").BlockLogs
    try:
        with block():
            smiles = chem.MolToSmiles(_rdkit("Chem.MolStandardize.rdMolStandardize").ChargeParent(parsed))
    except (RuntimeError, ValueError) as error:  # ValueError holds those of sanitising
        raise GritError("RDKit cannot standardise it; --standardise none leaves it as it is") from error
    return read_smiles(smiles)


def identity(molecule: "str | Mol") -> bytes:
    """16 bytes, the same for every way to write a structure: of its canonical SMILES, with stereo and without atom maps."""
    return hashlib.blake2b(canonical_smiles(molecule).encode(), digest_size=16).digest()


def canonical_smiles(molecule: "str | Mol") -> str:
    """The SMILES that is the same for every way to write a structure, with stereo and without atom maps."""
    parsed = read_smiles(molecule) if isinstance(molecule, str) else molecule
    chem = _rdkit("Chem")
    if any(atom.GetAtomMapNum() for atom in parsed.GetAtoms()):
        parsed = chem.Mol(parsed)
        for atom in parsed.GetAtoms():
            atom.SetAtomMapNum(0)
    return str(chem.MolToSmiles(parsed))


def kind_of_record(molecule: "Mol") -> RecordKind:
    """What a record is beside a plain molecule.

    ``metal`` if a metal is part of it, other than as the plain ion of a salt such as sodium. ``salt`` if it has several parts,
    and all but one are known counter-ions or solvents, or several are charged. ``mixture`` if it has several parts otherwise.
    """
    chem = _rdkit("Chem")
    for atom in molecule.GetAtoms():
        number = atom.GetAtomicNum()
        if number not in _NOT_METALS and not (number in _PLAIN_IONS and atom.GetDegree() == 0):
            return "metal"
    if len(chem.GetMolFrags(molecule)) == 1:
        return ""
    with _rdkit("rdBase").BlockLogs():
        left = chem.GetMolFrags(_known_parts().remove(molecule), asMols=True)
    if len(left) > 1 and sum(chem.GetFormalCharge(part) != 0 for part in left) < 2:
        return "mixture" if len({identity(part) for part in left}) > 1 else "salt"
    return "salt"


@cache
def _known_parts() -> Any:
    """RDKit's list of counter-ions and solvents; what is nothing else stays."""
    return _rdkit("Chem.MolStandardize.rdMolStandardize").FragmentRemover()


def _rdkit(module: str) -> Any:
    return importlib.import_module(f"rdkit.{module}")
