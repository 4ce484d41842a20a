"""Molecules as graphs: the features of OGB (PCQM4Mv2, Peptides) and of ZINC, ZINC's target, scaffolds and fingerprints.

`read_smiles` parses a SMILES. The others take the molecule that it gives, which they leave as it is, or a SMILES. They raise
`GritError` with a reason short enough for a table of bad rows. RDKit is optional (`pip install 'torch-grit[mol]'`) and is
imported by the first call, not by importing this module.
"""

import importlib
import importlib.util
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from grit.errors import GritError
from grit.graphs.chunk import Array, ArrayGraph

if TYPE_CHECKING:
    from rdkit.Chem import Atom, Bond, Mol

# What one molecule may cost. GRIT holds a vector for each pair of atoms: 1,000 atoms are a million pairs, 256 MB for 64
# channels. RDKit's scaffolds take cubic time, a second for 1,000 atoms and minutes for 5,000. Its search for rings goes
# astray in dense networks: 40 atoms, each bound to 20 others, take 40 seconds, and with 30 it crashes. Within these limits
# the worst that we found take seconds.
MAX_SMILES_LENGTH = 20_000
MAX_ATOMS = 1_000
MAX_RINGS = 300
MAX_NEIGHBOURS = 16
FINGERPRINT_BITS = 2048
_SURELY_SMALL = 200  # characters within which a SMILES cannot exceed the other limits by far enough to cost anything

# Node labels of ZINC in the order of the benchmark: symbol, explicit hydrogens, charge. ZINC-12k uses the first 21.
# fmt: off
ZINC_ATOMS = (
    "C", "O", "N", "F", "C H1", "S", "Cl", "O -", "N H1 +", "Br", "N H3 +", "N H2 +", "N +", "N -", "S -", "I", "P",
    "O H1 +", "N H1 -", "O +", "S +", "P H1", "P H2", "C H2 -", "P +", "S H1 +", "C H1 -", "P H1 +",
)
# fmt: on
_ZINC_BONDS = {"SINGLE": 1, "DOUBLE": 2, "TRIPLE": 3}

# RDKit's names in the order of OGB's feature tables. What is not listed takes OGB's last entry, "misc".
_CHIRALITIES = {"CHI_UNSPECIFIED": 0, "CHI_TETRAHEDRAL_CW": 1, "CHI_TETRAHEDRAL_CCW": 2, "CHI_OTHER": 3}
_HYBRIDISATIONS = {"SP": 0, "SP2": 1, "SP3": 2, "SP3D": 3, "SP3D2": 4}
_BOND_TYPES = {"SINGLE": 0, "DOUBLE": 1, "TRIPLE": 2, "AROMATIC": 3}
# Bond stereo is the one table without such an entry.
_BOND_STEREO = {
    "STEREONONE": 0,
    "STEREOZ": 1,
    "STEREOE": 2,
    "STEREOCIS": 3,
    "STEREOTRANS": 4,
    "STEREOANY": 5,
}


class ZincTerms(NamedTuple):
    """What the target of ZINC is made of.

    Attributes:
        logp: Octanol-water partition coefficient after Crippen.
        accessibility: Synthetic accessibility after Ertl and Schuffenhauer, 1 (easy) to 10.
        cycle: Atoms beyond six of the longest cycle in the cycle basis.
    """

    logp: float
    accessibility: float
    cycle: int


def why_no_smiles(item: object) -> str | None:
    """Why an entry of a list cannot be a SMILES, if so: it is not text. A blank of a data frame comes as None or NaN."""
    return None if isinstance(item, str) else f"not text but {type(item).__name__}"


def read_smiles(smiles: str) -> "Mol":
    """The molecule that `rdkit.Chem.MolFromSmiles` gives, or a `GritError` that says why there is none.

    A molecule beyond `MAX_ATOMS`, `MAX_RINGS` or `MAX_NEIGHBOURS` is refused before RDKit works on it.

    As in RDKit, text after a blank is a name or a CXSMILES extension, not part of the molecule.
    """
    if not smiles.strip():
        raise GritError("empty")
    if len(smiles) > MAX_SMILES_LENGTH:
        raise GritError(f"longer than {MAX_SMILES_LENGTH} characters")
    try:
        smiles.encode()
    except UnicodeEncodeError as error:
        raise GritError("not valid SMILES") from error
    with rdkit_module("rdBase").BlockLogs():
        if len(smiles) > _SURELY_SMALL:
            unchecked = rdkit_module("Chem").MolFromSmiles(smiles, sanitize=False)
            if unchecked is not None:
                check_cost(unchecked)
        molecule: Mol | None = rdkit_module("Chem").MolFromSmiles(smiles)
        if molecule is None:
            raise GritError(_why_unreadable(smiles))
    if molecule.GetNumAtoms() == 0:
        raise GritError("no atoms")
    return molecule


def ogb_graph(molecule: "str | Mol") -> ArrayGraph:
    """The graph of `ogb.utils.smiles2graph` (OGB 1.3.6), features as in `OGB_ATOM` and `OGB_BOND`, `y` of shape (1, 0).

    Shapes:
        x (n, 9) and edge_attr (E, 3) uint8; edge_index (2, E) int32, each bond followed by its reverse.
    """
    parsed = _parsed(molecule)
    atoms = [_ogb_atom(atom) for atom in parsed.GetAtoms()]
    bonds = [_ogb_bond(bond) for bond in parsed.GetBonds()]
    return _graph(parsed, atoms, bonds, num_bond_columns=3)


def zinc_graph(molecule: "str | Mol", *, num_labels: int = len(ZINC_ATOMS)) -> ArrayGraph:
    """The graph of the ZINC benchmark: a Kekulé structure with implicit hydrogens, `y` of shape (1, 0).

    Args:
        molecule: SMILES, or what `read_smiles` gives.
        num_labels: How many of `ZINC_ATOMS` may occur: 21 for ZINC-12k, 28 for ZINC-full.

    Shapes:
        x (n, 1) and edge_attr (E, 1) uint8; edge_index (2, E) int32, each bond followed by its reverse.
    """
    chem = rdkit_module("Chem")
    copy = chem.Mol(_parsed(molecule))
    try:
        # Also turns the explicit hydrogen of [nH] into an implicit one: there is no label "N H1".
        with rdkit_module("rdBase").BlockLogs():
            chem.Kekulize(copy, clearAromaticFlags=True)
    except chem.MolSanitizeException as error:
        # RDKit's own aromaticity model does not always lead back to a Kekulé structure.
        raise GritError(shorten(str(error), width=100)) from error
    atoms = [(_zinc_atom(atom, num_labels),) for atom in copy.GetAtoms()]
    bonds = [(_zinc_bond(bond),) for bond in copy.GetBonds()]
    return _graph(copy, atoms, bonds, num_bond_columns=1)


def zinc_target(molecule: "str | Mol") -> float:
    """ZINC's regression target, penalised logP with each term standardised over the benchmark.

        y = (logP - m_1) / s_1 - (SA - m_2) / s_2 - (cycle - m_3) / s_3

    The three means come together in one constant.
    """
    terms = zinc_terms(molecule)
    return (
        0.6976317963532803 * terms.logp
        - 1.1981676030421282 * terms.accessibility
        - 3.4751391596767145 * terms.cycle
        + 2.1118299971604784
    )


def zinc_terms(molecule: "str | Mol") -> ZincTerms:
    """The three terms of `zinc_target`."""
    copy = rdkit_module("Chem").Mol(_parsed(molecule))  # on which the scores may note what they find
    return ZincTerms(
        logp=float(rdkit_module("Chem.Crippen").MolLogP(copy)),
        accessibility=float(_sa_scorer(rdkit_module("RDConfig").RDContribDir).calculateScore(copy)),
        cycle=max(0, _longest_basis_cycle(copy) - 6),
    )


def murcko_scaffold(molecule: "str | Mol") -> str:
    """The Bemis-Murcko scaffold (ring systems and what links them) as SMILES without stereo; "" where there is no ring."""
    murcko = rdkit_module("Chem.Scaffolds.MurckoScaffold")
    return str(murcko.MurckoScaffoldSmiles(mol=_parsed(molecule), includeChirality=False))


def morgan_fingerprint(molecule: "str | Mol") -> Array:
    """The Morgan fingerprint of radius 2, (2048,) uint8: which surroundings of atoms there are."""
    bits: Array = _morgan_generator().GetFingerprintAsNumPy(_parsed(molecule))
    return bits


def morgan_counts(molecule: "str | Mol") -> Array:
    """How often each surrounding of the Morgan fingerprint of radius 2 occurs, (2048,) uint32."""
    counts: Array = _morgan_generator().GetCountFingerprintAsNumPy(_parsed(molecule))
    return counts


def _parsed(molecule: "str | Mol") -> "Mol":
    return read_smiles(molecule) if isinstance(molecule, str) else molecule


def rdkit_module(module: str) -> Any:
    """A module of RDKit, which is optional."""
    try:
        return importlib.import_module(f"rdkit.{module}")
    except ModuleNotFoundError as error:
        raise GritError("reading molecules needs RDKit: pip install 'torch-grit[mol]'.") from error


def check_cost(molecule: "Mol") -> None:
    """Raise if a molecule that was not sanitised is too large or too dense: that takes no time to find out."""
    # Hydrogens of their own become part of their neighbours; heavy hydrogen stays an atom.
    atoms = sum(atom.GetAtomicNum() != 1 or atom.GetIsotope() > 0 for atom in molecule.GetAtoms())
    if atoms > MAX_ATOMS:
        raise GritError(f"{atoms:,} atoms, at most {MAX_ATOMS:,} are read")
    components = len(rdkit_module("Chem").GetMolFrags(molecule))
    rings = molecule.GetNumBonds() - molecule.GetNumAtoms() + components
    if rings > MAX_RINGS:
        raise GritError(f"{rings:,} rings, at most {MAX_RINGS:,} are read")
    neighbours = max((atom.GetDegree() for atom in molecule.GetAtoms()), default=0)
    if neighbours > MAX_NEIGHBOURS:
        raise GritError(f"an atom with {neighbours} neighbours, at most {MAX_NEIGHBOURS} are read")


def _why_unreadable(smiles: str) -> str:
    chem = rdkit_module("Chem")
    molecule = chem.MolFromSmiles(smiles, sanitize=False)
    if molecule is None:
        return "not valid SMILES"
    try:
        # A failed check inside RDKit, as for [CH999], is worded about its source code: of no use to the reader.
        with suppress(RuntimeError):
            chem.SanitizeMol(molecule)
    except chem.MolSanitizeException as error:
        return shorten(str(error), width=100)
    return "not a possible molecule"


def _ogb_atom(atom: "Atom") -> tuple[int, ...]:
    number, charge = atom.GetAtomicNum(), atom.GetFormalCharge()
    return (
        number - 1 if number > 0 else 118,
        _CHIRALITIES.get(str(atom.GetChiralTag()), 4),
        min(atom.GetTotalDegree(), 11),
        charge + 5 if abs(charge) <= 5 else 11,
        min(atom.GetTotalNumHs(), 9),
        min(atom.GetNumRadicalElectrons(), 5),
        _HYBRIDISATIONS.get(str(atom.GetHybridization()), 5),
        int(atom.GetIsAromatic()),
        int(atom.IsInRing()),
    )


def _ogb_bond(bond: "Bond") -> tuple[int, ...]:
    stereo = str(bond.GetStereo())
    if stereo not in _BOND_STEREO:
        raise GritError(f"OGB has no feature for the bond stereo {stereo}")
    return (_BOND_TYPES.get(str(bond.GetBondType()), 4), _BOND_STEREO[stereo], int(bond.GetIsConjugated()))


def _zinc_atom(atom: "Atom", num_labels: int) -> int:
    # Hydrogens count where the SMILES needs brackets ([C@H], [NH+]); one written as an atom of its own is implicit here.
    hydrogens = atom.GetNumExplicitHs() if atom.GetNoImplicit() else 0
    charge = atom.GetFormalCharge()
    parts = [atom.GetSymbol()]
    if hydrogens:
        parts.append(f"H{hydrogens}")
    if charge:
        parts.append(("+" if charge > 0 else "-") * abs(charge))
    label = " ".join(parts)
    if label not in ZINC_ATOMS[:num_labels]:
        raise GritError(f"atom {label!r} is not among the {num_labels} of ZINC")
    return ZINC_ATOMS.index(label)


def _zinc_bond(bond: "Bond") -> int:
    kind = str(bond.GetBondType())
    if kind not in _ZINC_BONDS:
        raise GritError(f"bond {kind!r} is not among the {len(_ZINC_BONDS)} of ZINC")
    return _ZINC_BONDS[kind]


def _graph(
    molecule: "Mol", atoms: Sequence[Sequence[int]], bonds: Sequence[Sequence[int]], *, num_bond_columns: int
) -> ArrayGraph:
    # The widths are given because a molecule without bonds must keep its columns.
    ends: Array = np.array(
        [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in molecule.GetBonds()], dtype=np.int32
    ).reshape(-1, 2)
    edges = np.stack([ends, ends[:, ::-1]], axis=1).reshape(-1, 2)  # (2 * bonds, 2): i -> j, j -> i, next bond
    return ArrayGraph(
        x=np.array(atoms, dtype=np.uint8),
        edge_index=np.ascontiguousarray(edges.T),
        edge_attr=np.repeat(np.array(bonds, dtype=np.uint8).reshape(-1, num_bond_columns), 2, axis=0),
        y=np.empty((1, 0), dtype=np.float32),
    )


@cache
def _morgan_generator() -> Any:
    return rdkit_module("Chem.rdFingerprintGenerator").GetMorganGenerator(radius=2, fpSize=FINGERPRINT_BITS)


@cache
def _sa_scorer(contrib: str) -> Any:
    """RDKit's `sascorer`, which ships as a script beside the package, not as a module of it."""
    script = Path(contrib) / "SA_Score" / "sascorer.py"
    spec = importlib.util.spec_from_file_location("rdkit_sascorer", script)
    if spec is None or spec.loader is None or not script.is_file():
        raise GritError("this RDKit comes without Contrib/SA_Score; the wheels on PyPI have it: pip install rdkit.")
    scorer = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(scorer)
    return scorer


def _longest_basis_cycle(molecule: "Mol") -> int:
    """Atoms of the longest cycle in the cycle basis rooted at the first atom; 0 without a ring.

    A cycle basis depends on its root and on the order of neighbours (ascending here): this is the definition of the
    benchmark, not the smallest rings. Each further component is rooted at its own first atom.
    """
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(range(molecule.GetNumAtoms()))
    graph.add_edges_from(sorted(sorted((b.GetBeginAtomIdx(), b.GetEndAtomIdx())) for b in molecule.GetBonds()))
    lengths = [0]
    for atoms in nx.connected_components(graph):
        lengths += map(len, nx.cycle_basis(graph.subgraph(atoms), root=min(atoms)))
    return max(lengths)
