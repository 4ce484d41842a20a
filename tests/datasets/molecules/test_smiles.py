"""SMILES to graphs: equal to OGB's own features, to ZINC's graphs and targets, and no input that escapes as another error."""

import csv
import gzip
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import islice, product
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grit.datasets.benchmarks import zinc_mini
from grit.datasets.molecules.smiles import (
    MAX_ATOMS,
    MAX_SMILES_LENGTH,
    ZINC_ATOMS,
    murcko_scaffold,
    ogb_graph,
    read_smiles,
    zinc_graph,
    zinc_target,
    zinc_terms,
)
from grit.errors import GritError
from grit.graphs.chunk import ArrayGraph, GraphChunk
from grit.graphs.schema import OGB_ATOM, OGB_BOND

Chem = pytest.importorskip("rdkit.Chem")

OGB = json.loads((Path(__file__).parents[2] / "fixtures" / "ogb_features.json").read_text())["molecules"]
BUNDLE = Path(zinc_mini.__file__).parent / "zinc_mini.smi.gz"
ZINC = Path(__file__).parents[4] / "shared" / "data" / "zinc"
needs_zinc = pytest.mark.skipif(not ZINC.is_dir(), reason="the ZINC tables are not part of the repository")

ASPIRIN = "CC(=O)Oc1ccccc1C(=O)O"


def network(left: int, right: int) -> str:
    """Atoms of one kind that are each bound to all of another kind: RDKit's search for rings takes minutes from 20 on."""
    bonds = {(i, j): number for number, (i, j) in enumerate(product(range(left), range(right)), 10)}
    atoms = [[bonds[i, j] for j in range(right)] for i in range(left)]
    atoms += [[bonds[i, j] for i in range(left)] for j in range(right)]
    return ".".join("*" + "".join(f"%({number})" for number in bonds) for bonds in atoms)


def rows_of(name: str, *, step: int, count: int) -> Iterator[tuple[int, dict[str, str]]]:
    with gzip.open(ZINC / name, "rt", newline="") as file:
        yield from islice(enumerate(csv.DictReader(file, delimiter="\t")), 0, step * count, step)


def canonical(smiles: str) -> str:
    return str(Chem.MolToSmiles(read_smiles(smiles)))


def labelled(graph: ArrayGraph) -> nx.DiGraph:
    result = nx.DiGraph()
    result.add_nodes_from((node, {"label": int(label)}) for node, label in enumerate(graph.x[:, 0]))
    for source, target, label in zip(*graph.edge_index.tolist(), graph.edge_attr[:, 0].tolist(), strict=True):
        result.add_edge(source, target, label=label)
    return result


def is_same_graph(one: ArrayGraph, other: ArrayGraph) -> bool:
    def same_label(a: dict[str, int], b: dict[str, int]) -> bool:
        return a["label"] == b["label"]

    return nx.is_isomorphic(labelled(one), labelled(other), node_match=same_label, edge_match=same_label)


class TestReadSmiles:
    @pytest.mark.parametrize(
        ("smiles", "reason"),
        [
            ("", "empty"),
            (" \t\n", "empty"),
            ("hello", "not valid SMILES"),
            ("C1CC", "not valid SMILES"),
            ("CC\0C", "not valid SMILES"),
            ("é", "not valid SMILES"),
            ("CC \ud800", "not valid SMILES"),
            ("CCO>>CC=O", "not valid SMILES"),
            ("CC |not an extension", "not valid SMILES"),
            ("CCCN(C)(C)(C)C", "Explicit valence for atom # 3 N, 5, is greater than permitted"),
            ("c1cc1", "Can't kekulize mol. Unkekulized atoms: 0 1 2"),
            ("Cc", "non-ring atom 1 marked aromatic"),
            ("[CH999]", "not a possible molecule"),
            ("C" * (MAX_SMILES_LENGTH + 1), "longer than 20000 characters"),
            ("C" * 5_000, "5,000 atoms, at most 1,000 are read"),
            ("C" * (MAX_ATOMS + 1), "1,001 atoms, at most 1,000 are read"),
            ("O" + "C([2H])([2H])" * 400, "1,201 atoms, at most 1,000 are read"),
            (network(20, 20), "361 rings, at most 300 are read"),
            (network(4, 80), "an atom with 80 neighbours, at most 16 are read"),
            ("[U]" + "(F)" * 17 + ".C" * 100, "an atom with 17 neighbours, at most 16 are read"),
            (network(16, 16)[:-1], "not valid SMILES"),
        ],
    )
    def test_bad_input_gives_a_short_reason(self, smiles: str, reason: str) -> None:
        with pytest.raises(GritError) as caught:
            read_smiles(smiles)
        assert str(caught.value) == reason

    @pytest.mark.parametrize(
        ("smiles", "atoms"),
        [
            ("C" * MAX_ATOMS, 1_000),
            ("C([H])([H])" * 600, 600),
            (network(9, 9), 18),
            ("[U]" + "(F)" * 16 + ".C" * 100, 117),
            (".".join("C" * MAX_ATOMS), 1_000),
            ("C(" * 900 + "C" + ")" * 900, 901),
        ],
    )
    def test_large_molecules_within_the_limits(self, smiles: str, atoms: int) -> None:
        """Each takes RDKit at most seconds, where the ones beyond the limits take minutes or the memory."""
        assert ogb_graph(smiles).x.shape[0] == atoms
        murcko_scaffold(smiles)

    def test_a_molecule_of_nothing_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Chem, "MolFromSmiles", lambda smiles: Chem.Mol())
        with pytest.raises(GritError, match="^no atoms$"):
            read_smiles("C")

    def test_the_reason_stays_short(self) -> None:
        with pytest.raises(GritError) as caught:
            read_smiles("c1" + "cc" * 200 + "1")
        assert str(caught.value).startswith("Can't kekulize mol.")
        assert len(str(caught.value)) <= 100

    @pytest.mark.parametrize("smiles", [*(entry["smiles"] for entry in OGB), " CCO ", "CCO ethanol", "CC |$a;b$|"])
    def test_equals_rdkit(self, smiles: str) -> None:
        assert read_smiles(smiles).ToBinary() == Chem.MolFromSmiles(smiles).ToBinary()

    def test_hydrogens_become_implicit(self) -> None:
        assert read_smiles("[H]C([H])([H])[H]").GetNumAtoms() == 1

    def test_prints_nothing(self, capfd: pytest.CaptureFixture[str]) -> None:
        for smiles in ("C1CC", "c1cc1", "C[N](C)(C)(C)C", "CC |bad|", "[CH999]"):
            with pytest.raises(GritError):
                read_smiles(smiles)
        assert capfd.readouterr() == ("", "")
        Chem.MolFromSmiles("C1CC")
        assert "unclosed ring" in capfd.readouterr().err, "the logs of other code must stay on"

    def test_without_rdkit_says_what_to_install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for module in ("rdkit", "rdkit.Chem", "rdkit.rdBase"):
            monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(GritError, match=r"pip install 'torch-grit\[mol\]'"):
            read_smiles("C")

    def test_importing_the_module_does_not_import_rdkit(self) -> None:
        code = "import sys, grit.datasets.molecules.smiles; sys.exit('rdkit' in sys.modules)"
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


class TestOgbGraph:
    @pytest.mark.parametrize("entry", OGB, ids=lambda entry: entry["smiles"])
    def test_equals_ogb(self, entry: dict[str, Any]) -> None:
        graph = ogb_graph(entry["smiles"])
        assert graph.x.tolist() == entry["x"]
        assert graph.edge_index.tolist() == entry["edge_index"]
        assert graph.edge_attr.tolist() == entry["edge_attr"]

    def test_the_molecules_cover_the_last_entry_of_the_tables(self) -> None:
        atoms = np.concatenate([entry["x"] for entry in OGB])
        bonds = np.concatenate([np.reshape(entry["edge_attr"], (-1, 3)) for entry in OGB])
        # Degrees above 10 and more than 4 radical electrons are no molecules.
        assert (atoms.max(axis=0) + 1 == OGB_ATOM.sizes).tolist() == [
            True,
            True,
            False,
            True,
            True,
            False,
            True,
            True,
            True,
        ]
        assert (bonds.max(axis=0) + 1).tolist() == list(OGB_BOND.sizes)

    @pytest.mark.parametrize("smiles", ["C", "CC", "[Na+].[Cl-]"])
    def test_form_of_the_arrays(self, smiles: str) -> None:
        graph = ogb_graph(smiles)
        assert graph.x.shape[1:] == (9,)
        assert graph.edge_index.shape == (2, graph.edge_attr.shape[0])
        assert graph.edge_attr.shape[1:] == (3,)
        assert graph.y.shape == (1, 0)
        assert (graph.x.dtype, graph.edge_index.dtype, graph.edge_attr.dtype) == (np.uint8, np.int32, np.uint8)

    def test_graphs_go_into_a_chunk(self) -> None:
        chunk = GraphChunk.of([ogb_graph("C"), ogb_graph(ASPIRIN)])
        assert chunk.x.shape == (14, 9)
        assert chunk.edge_attr.shape == (26, 3)

    def test_bond_stereo_that_ogb_does_not_know(self) -> None:
        molecule = read_smiles("CC")
        molecule.GetBondWithIdx(0).SetStereo(Chem.BondStereo.STEREOATROPCW)
        with pytest.raises(GritError, match="no feature for the bond stereo STEREOATROPCW"):
            ogb_graph(molecule)


class TestZincGraph:
    def test_vocabulary(self) -> None:
        assert len(ZINC_ATOMS) == len(set(ZINC_ATOMS)) == 28
        assert (ZINC_ATOMS[0], ZINC_ATOMS[4], ZINC_ATOMS[20], ZINC_ATOMS[27]) == ("C", "C H1", "S +", "P H1 +")

    @pytest.mark.parametrize(
        ("smiles", "labels"),
        [
            ("CCO", ["C", "C", "O"]),
            ("C[C@H](F)Cl", ["C", "C H1", "F", "Cl"]),
            ("C[NH+](C)C", ["C", "N H1 +", "C", "C"]),
            ("CC(=O)[O-]", ["C", "C", "O", "O -"]),
            ("c1cc[nH]c1", ["C", "C", "C", "N", "C"]),
            ("[H]OC([H])([H])[H]", ["O", "C"]),
            ("[H][N+](C)(C)C", ["N H1 +", "C", "C", "C"]),
        ],
    )
    def test_atom_labels(self, smiles: str, labels: list[str]) -> None:
        assert [ZINC_ATOMS[label] for label in zinc_graph(smiles).x[:, 0]] == labels

    def test_benzene_has_alternating_bonds_in_both_directions(self) -> None:
        graph = zinc_graph("c1ccccc1")
        bonds = dict(zip(zip(*graph.edge_index.tolist(), strict=True), graph.edge_attr[:, 0].tolist(), strict=True))
        assert len(bonds) == 12
        assert all(bonds[i, j] == bonds[j, i] for i, j in bonds)
        assert sorted(sum(kind for (i, _), kind in bonds.items() if i == atom) for atom in range(6)) == [3] * 6

    def test_triple_bond(self) -> None:
        assert zinc_graph("C#N").edge_attr.tolist() == [[3], [3]]

    def test_single_atom(self) -> None:
        graph = zinc_graph("C")
        assert graph.x.tolist() == [[0]]
        assert graph.edge_index.shape == (2, 0)
        assert graph.edge_attr.shape == (0, 1)
        assert graph.y.shape == (1, 0)

    @pytest.mark.parametrize(
        ("smiles", "label"),
        [("OB(O)c1ccccc1", "'B'"), ("C[Si](C)C", "'Si'"), ("[Ca+2]", "'Ca ++'"), ("[O-2]", "'O --'")],
    )
    def test_an_atom_outside_the_vocabulary_is_named(self, smiles: str, label: str) -> None:
        with pytest.raises(GritError, match=f"atom {label} is not among the 28 of ZINC".replace("+", r"\+")):
            zinc_graph(smiles)

    def test_fewer_labels_allowed(self) -> None:
        assert zinc_graph("C[PH](C)(C)C", num_labels=28).x.max() == 21
        with pytest.raises(GritError, match="atom 'P H1' is not among the 21 of ZINC"):
            zinc_graph("C[PH](C)(C)C", num_labels=21)

    @pytest.mark.parametrize(("smiles", "bond"), [("C$C", "QUADRUPLE"), ("C:C", "AROMATIC")])
    def test_a_bond_outside_the_vocabulary_is_named(self, smiles: str, bond: str) -> None:
        with pytest.raises(GritError, match=f"bond '{bond}'"):
            zinc_graph(smiles)

    def test_a_molecule_without_a_kekule_structure(self, capfd: pytest.CaptureFixture[str]) -> None:
        smiles = "C1C=2ccccc2=[NH+]C1=O"
        read_smiles(smiles)
        with pytest.raises(GritError, match="^Can't kekulize mol. Unkekulized atoms: "):
            zinc_graph(smiles)
        assert capfd.readouterr() == ("", "")

    @needs_zinc
    def test_equals_zinc_12k(self) -> None:
        with np.load(ZINC / "zinc12k_graphs.npz") as file:
            stored = dict(file)
        for row, record in rows_of("zinc12k.tsv.gz", step=40, count=300):
            nodes = slice(*stored["node_ptr"][row : row + 2])
            edges = slice(*stored["edge_ptr"][row : row + 2])
            expected = ArrayGraph(
                stored["x"][nodes, None],
                stored["edge_index"][:, edges],
                stored["edge_attr"][edges, None],
                np.empty((1, 0)),
            )
            assert is_same_graph(zinc_graph(record["smiles"], num_labels=21), expected), record["smiles"]
            assert zinc_target(record["smiles"]) == pytest.approx(float(stored["y"][row]), abs=1e-4), record["smiles"]


class TestZincTarget:
    def test_terms_of_aspirin(self) -> None:
        terms = zinc_terms(ASPIRIN)
        assert terms.logp == pytest.approx(1.3101, abs=1e-4)
        assert terms.accessibility == pytest.approx(1.58, abs=1e-3)
        assert terms.cycle == 0
        assert zinc_target(ASPIRIN) == pytest.approx(1.1327, abs=1e-3)

    @pytest.mark.parametrize(
        ("smiles", "cycle"),
        [
            ("CCCCCCCCCC", 0),
            ("C1CCCCC1", 0),
            ("C1CCCCCCC1", 2),
            ("C", 0),
            # Each component counts, whichever comes first; without a ring it has no cycle.
            ("[Na+].C1CCCCCCC1", 2),
            ("C1CC1.C1CCCCCCC1", 2),
            ("C1CCCCCCC1.C1CC1", 2),
        ],
    )
    def test_cycle_term(self, smiles: str, cycle: int) -> None:
        assert zinc_terms(smiles).cycle == cycle

    def test_the_cycle_basis_depends_on_the_first_atom(self) -> None:
        # Adamantane: four smallest rings of six, but the basis of the benchmark holds a longer cycle.
        assert zinc_terms("C1C2CC3CC1CC(C2)C3").cycle == 2

    def test_without_the_contributed_script(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr("rdkit.RDConfig.RDContribDir", str(tmp_path))
        with pytest.raises(GritError, match="without Contrib/SA_Score"):
            zinc_target("C")

    @needs_zinc
    @pytest.mark.parametrize(
        ("table", "step", "cycle"), [("zinc12k.tsv.gz", 40, "cycle"), ("zinc_full.tsv.gz", 831, "cycle_nx")]
    )
    def test_equals_the_tables(self, table: str, step: int, cycle: str) -> None:
        for _, record in rows_of(table, step=step, count=300):
            terms = zinc_terms(record["smiles"])
            assert terms.logp == pytest.approx(float(record["logP"]), abs=1e-6), record["smiles"]
            assert terms.accessibility == pytest.approx(float(record["SA"]), abs=1e-6), record["smiles"]
            assert terms.cycle == int(record[cycle]), record["smiles"]
            assert zinc_target(record["smiles"]) == pytest.approx(float(record["y"]), abs=1e-4), record["smiles"]
            zinc_graph(record["smiles"])


@pytest.mark.parametrize(
    ("smiles", "scaffold"),
    [
        ("Cc1ccccc1", "c1ccccc1"),
        ("CCCC", ""),
        ("[Na+].[Cl-]", ""),
        (ASPIRIN, "c1ccccc1"),
        ("c1ccccc1CCc1ccccc1", "c1ccc(CCc2ccccc2)cc1"),
        ("C[C@H]1CC[C@@H](O)CC1", "C1CCCCC1"),
        (
            "C1CC[C@H]2CCCC[C@@H]2C1",
            "C1CCC2CCCCC2C1",
        ),  # these centres belong to the scaffold, and still it has no stereo
        ("O=C1CC/C=C/CCCC1", "O=C1CCC=CCCCC1"),
        ("O=C1CCCCC1", "O=C1CCCCC1"),
        ("Cn1cccc1", "c1cc[nH]c1"),
        ("Cc1ccncc1.Cl", "c1ccncc1"),
    ],
)
def test_murcko_scaffold(smiles: str, scaffold: str) -> None:
    assert murcko_scaffold(smiles) == scaffold


@pytest.fixture(scope="module")
def bundled() -> list[str]:
    return gzip.decompress(BUNDLE.read_bytes()).decode().splitlines()


class TestBundle:
    def test_every_line_is_a_different_molecule_of_zinc(self, bundled: list[str]) -> None:
        assert len(bundled) == 2_500
        assert len({canonical(smiles) for smiles in bundled}) == 2_500
        for smiles in bundled:
            zinc_graph(smiles, num_labels=21)

    @needs_zinc
    def test_no_line_is_in_the_held_out_sets(self, bundled: list[str]) -> None:
        held_out = {record["smiles"] for _, record in rows_of("zinc_full.tsv.gz", step=1, count=5_000)}
        held_out |= {
            record["smiles"] for row, record in rows_of("zinc12k.tsv.gz", step=1, count=12_000) if row >= 10_000
        }
        assert not {canonical(smiles) for smiles in bundled} & {canonical(smiles) for smiles in held_out}


SYMBOLS = "CNOFPSIBclnosp[]()=#$:/\\@+-.%0123456789H*{}|^&;,~<>? \t\n\0é"


@st.composite
def mutated_smiles(draw: st.DrawFn) -> str:
    smiles = draw(st.sampled_from([entry["smiles"] for entry in OGB]))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(smiles)))
        stop = draw(st.integers(start, min(len(smiles), start + 3)))
        smiles = smiles[:start] + draw(st.text(SYMBOLS, max_size=3)) + smiles[stop:]
    return smiles


def refusal(function: Callable[[str], object], smiles: str) -> str | None:
    try:
        function(smiles)
    except GritError as error:
        return str(error)
    return None


def check_against_rdkit(smiles: str) -> None:
    """`read_smiles` refuses what RDKit refuses, and otherwise gives the same molecule."""
    expected = Chem.MolFromSmiles(smiles) if smiles.strip() else None
    if expected is None:
        assert 0 < len(refusal(read_smiles, smiles) or "") <= 100
    else:
        assert read_smiles(smiles).ToBinary() == expected.ToBinary()


@settings(max_examples=300)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | st.text(SYMBOLS, max_size=40))
def test_any_text_is_a_molecule_or_a_grit_error(text: str) -> None:
    check_against_rdkit(text)


@settings(max_examples=600)
@given(mutated_smiles())
def test_almost_smiles_is_a_molecule_or_a_grit_error(smiles: str) -> None:
    check_against_rdkit(smiles)
    for function in (ogb_graph, zinc_graph, zinc_target, murcko_scaffold):
        assert len(refusal(function, smiles) or "") <= 100
