import numpy as np
import pytest

pytest.importorskip("rdkit")

from grit.datasets.molecules.smiles import morgan_fingerprint
from grit.graphs.schema import TaskSpec
from grit.training.forest import constant_outputs, forest_outputs, packed_fingerprints

SMILES = ["C" * (k % 8 + 1) + ("O" if k % 2 else "N") for k in range(40)]
TRAIN, TEST = (np.unpackbits(packed_fingerprints(part), axis=1) for part in (SMILES[:30], SMILES[30:]))


def test_constants():
    regression = TaskSpec(kind="regression", targets=("a", "b"), loss="l1", metric="mae")
    assert constant_outputs(regression, np.array([[1.0, np.nan], [3.0, 5.0]]), 2).tolist() == [[2.0, 5.0]] * 2
    classes = TaskSpec(
        kind="multiclass", targets=("a",), classes=("x", "y", "z"), loss="cross_entropy", metric="accuracy"
    )
    assert constant_outputs(classes, np.array([[0.0], [0.0], [2.0], [np.nan]]), 1)[0].tolist() == pytest.approx(
        [2 / 3, 0, 1 / 3]
    )


def classes_of_length():
    return np.array([[float(len(each) > 4)] for each in SMILES[:30]])


def test_forests():
    has_oxygen = np.array([[float("O" in each)] for each in SMILES])
    binary = TaskSpec(kind="binary", targets=("a",), classes=("0", "1"), loss="cross_entropy", metric="auroc")
    outputs = forest_outputs(binary, TRAIN, has_oxygen[:30], TEST)
    assert outputs.shape == (10, 1)
    assert ((outputs > 0.5) == has_oxygen[30:]).all()
    several = TaskSpec(kind="multilabel", targets=("a", "b"), loss="cross_entropy", metric="ap")
    y = np.concatenate([has_oxygen, 1 - has_oxygen], 1)
    y[::5, 1] = np.nan
    outputs = forest_outputs(several, TRAIN, y[:30], TEST)
    assert ((outputs > 0.5) == np.concatenate([has_oxygen, 1 - has_oxygen], 1)[30:]).all()
    classes = TaskSpec(
        kind="multiclass", targets=("a",), classes=("x", "y", "z"), loss="cross_entropy", metric="accuracy"
    )
    outputs = forest_outputs(classes, TRAIN, 2 * has_oxygen[:30], TEST)
    assert outputs.shape == (10, 3)
    assert (outputs[:, 1] == 0).all()
    one, same, other = (forest_outputs(binary, TRAIN, 1 - classes_of_length(), TEST, seed) for seed in (1, 1, 2))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)
    numbers = TaskSpec(kind="regression", targets=("a",), loss="l1", metric="mae")
    length = np.array([[float(len(each))] for each in SMILES])
    assert np.abs(forest_outputs(numbers, TRAIN, length[:30], TEST) - length[30:]).mean() < 1.0


def test_the_seed_of_a_forest_matters_and_decides():
    x = np.stack([morgan_fingerprint("C" * (k % 8 + 1) + ("O" if k % 2 else "N")) for k in range(40)])
    noise = np.random.default_rng(0).normal(size=(30, 1))
    for task in (
        TaskSpec(kind="regression", targets=("a",), loss="l1", metric="mae"),
        TaskSpec(kind="binary", targets=("a",), classes=("0", "1"), loss="cross_entropy", metric="auroc"),
    ):
        y = noise if task.kind == "regression" else (noise > 0).astype(float)
        a, b, c = (forest_outputs(task, x[:30], y, x[30:], seed) for seed in (0, 0, 1))
        assert np.abs(a - b).max() < 1e-12  # trees are added up in any order
        assert np.abs(a - c).max() > 1e-3


def test_fingerprints_reach_two_bonds_far():
    """Around no atom do heptane and octane differ within two bonds; within three they do. Hexane differs within two."""
    hexane, heptane, octane = (morgan_fingerprint("C" * length) for length in (6, 7, 8))
    assert hexane.shape == (2048,)
    assert (heptane == octane).all()
    assert (hexane != heptane).any()
