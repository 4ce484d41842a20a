"""The nearest training molecule, against RDKit's own similarity."""

import numpy as np
import pytest

pytest.importorskip("rdkit")

from rdkit import Chem, DataStructs
from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator

from grit.errors import GritError
from grit.training.forest import packed_fingerprints
from grit.training.neighbours import Neighbours, nearest_similarity, read_neighbours

SMILES = ["C" * n + end for n in range(1, 8) for end in ("O", "N", "c1ccccc1", "C(=O)O", "C1CCNCC1", "F")]


def rdkit_similarities(queries, known):
    make = GetMorganGenerator(radius=2, fpSize=2048).GetFingerprint
    bits = [make(Chem.MolFromSmiles(each)) for each in known]
    return np.array([DataStructs.BulkTanimotoSimilarity(make(Chem.MolFromSmiles(each)), bits) for each in queries])


def test_it_is_that_of_rdkit():
    queries = ["CCO", "c1ccccc1Br", "[He]", "CC(C)(C)S"]
    found = nearest_similarity(packed_fingerprints(queries), packed_fingerprints(SMILES))
    np.testing.assert_allclose(found, rdkit_similarities(queries, SMILES).max(1))
    assert found[0] == 1.0


@pytest.mark.parametrize("words", [1, 32 * 5, 32 * 100])
def test_blocks_give_the_same(words):
    packed = packed_fingerprints(SMILES)
    whole = nearest_similarity(packed, packed, skip=np.arange(len(packed)))
    found = nearest_similarity(packed, packed, skip=np.arange(len(packed)), block=words)
    np.testing.assert_array_equal(found, whole)


def test_the_limit_is_what_training_molecules_have_among_themselves():
    packed = packed_fingerprints(SMILES)
    others = rdkit_similarities(SMILES, SMILES)
    np.fill_diagonal(others, 0)
    known = Neighbours.of(packed, np.arange(len(packed)))
    assert known.limit == pytest.approx(np.quantile(others.max(1), 0.05))
    near, far = known.notes(known.similarity(packed_fingerprints(["CCCO", "[U]"])))
    assert near == ""
    similarity = rdkit_similarities(["[U]"], SMILES).max()
    assert far == f"unlike the training molecules: similarity {similarity:.2f}, usual from {known.limit:.2f}"


def test_a_single_molecule_has_no_others():
    known = Neighbours.of(packed_fingerprints(["CC"]), np.array([3]))
    assert known.limit == 0.0
    assert known.notes(known.similarity(packed_fingerprints(["[U]"]))) == ("",)
    assert known.similarity(np.zeros((0, 256), dtype=np.uint8)).shape == (0,)


def test_the_file(tmp_path):
    assert read_neighbours(tmp_path) is None
    known = Neighbours.of(packed_fingerprints(SMILES), np.arange(len(SMILES)))
    known.write(tmp_path)
    again = read_neighbours(tmp_path)
    assert again is not None
    np.testing.assert_array_equal(again.fingerprints, known.fingerprints)
    assert again.limit == known.limit
    (tmp_path / "neighbours.npz").write_bytes(b"PK not quite")
    with pytest.raises(GritError, match=r"neighbours.npz' cannot be read.*--resume"):
        read_neighbours(tmp_path)
    np.savez(tmp_path / "neighbours.npz", fingerprints=np.zeros((2, 3)), rows=np.arange(2), limit=0.1)
    with pytest.raises(GritError, match="holds no fingerprints"):
        read_neighbours(tmp_path)
