"""Simple predictors beside a model, on targets of every kind."""

import numpy as np
import pytest

from grit.graphs.schema import TaskSpec
from grit.training import compare_simple as module
from grit.training.compare_simple import SIMPLE_PREDICTORS, compare_simple, kept_descriptors
from grit.training.forest import packed_fingerprints

SMILES = ["C" * (k % 10 + 1) + "OONN"[k % 4] + "C" * (k % 3) for k in range(80)]
TRAIN, TEST = np.arange(50), np.arange(50, 80)
LENGTH = np.array([len(each) for each in SMILES], dtype=float)[:, None]
OXYGEN = np.array(["O" in each for each in SMILES], dtype=float)[:, None]
NUMBER = TaskSpec(kind="regression", targets=("a",), loss="l1", metric="mae")
CLASS = TaskSpec(kind="binary", targets=("a",), classes=("n", "y"), loss="cross_entropy", metric="auroc")
LABELS = TaskSpec(kind="multilabel", targets=("a", "b"), loss="cross_entropy", metric="auroc")
CLASSES = TaskSpec(kind="multiclass", targets=("a",), classes=("x", "y", "z"), loss="cross_entropy", metric="accuracy")


@pytest.fixture(scope="module")
def inputs():
    return {"fingerprints": packed_fingerprints(SMILES), "descriptors": kept_descriptors(SMILES, processes=1)}


def holes(targets):
    return np.where(np.arange(targets.size).reshape(targets.shape) % 7 == 0, np.nan, targets)


@pytest.mark.parametrize(
    ("task", "targets"),
    [
        (NUMBER, holes(LENGTH)),
        (CLASS, holes(OXYGEN)),
        (LABELS, holes(np.concatenate([OXYGEN, LENGTH > 6], axis=1))),
        (CLASSES, holes(np.clip(LENGTH // 5, 0, 2))),
    ],
)
def test_every_kind_of_target(inputs, task, targets):
    model = np.full((len(TEST), task.num_outputs), 0.5)
    said = []
    found = compare_simple(task, targets, TRAIN, TEST, inputs, model=model, say=said.append)
    missing = {name for name, each in SIMPLE_PREDICTORS.items() if any(each.title in line for line in said)}
    assert found.keys() == SIMPLE_PREDICTORS.keys() - missing
    metric = task.metric
    for row in found.values():
        assert row.outputs.shape == (len(TEST), task.num_outputs)
        assert np.isfinite(row.outputs).all()
        assert list(row.measured.targets) == list(task.targets)
    simple, learned = (found[name].measured.average[metric].value for name in ("constant", "forest-descriptors"))
    assert learned < simple if task.kind == "regression" else learned > simple
    ahead = found["forest-descriptors"].ahead
    assert ahead.p < 0.05  # a model that says 0.5 of everything is worse
    assert (ahead.value > 0) == (task.kind == "regression")
    assert found["forest"].as_json()["model_minus_this"]["p"] == found["forest"].ahead.p


def test_the_truth_of_test_molecules_is_never_learned(inputs):
    other = LENGTH.copy()
    other[TEST] = 1000.0
    one, two = (compare_simple(NUMBER, y, TRAIN, TEST, inputs) for y in (LENGTH, other))
    for name in one:
        np.testing.assert_allclose(one[name].outputs, two[name].outputs, rtol=1e-12)  # trees are summed in any order


def test_a_target_without_training_labels_and_one_class(inputs):
    targets = np.concatenate([OXYGEN, OXYGEN], axis=1)
    targets[TRAIN, 1] = np.nan
    for row in compare_simple(LABELS, targets, TRAIN, TEST, inputs).values():
        assert (row.outputs[:, 1] == 0.5).all()
        assert row.ahead is None
    targets[TRAIN, 1] = 1.0
    for row in compare_simple(LABELS, targets, TRAIN, TEST, inputs).values():
        assert (row.outputs[:, 1] == 1.0).all()


def test_only_what_its_inputs_allow(inputs):
    assert list(compare_simple(NUMBER, LENGTH, TRAIN, TEST, {})) == ["constant"]
    found = compare_simple(NUMBER, LENGTH, TRAIN, TEST, {"fingerprints": inputs["fingerprints"]})
    assert list(found) == ["constant", "forest"]


def test_a_missing_package_is_said(inputs, monkeypatch):
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    said = []
    found = compare_simple(NUMBER, LENGTH, TRAIN, TEST, inputs, say=said.append)
    assert "boosting" not in found
    assert said == [
        "descriptors + LightGBM is left out of the comparison: pip install 'torch-grit[lightgbm]' brings it."
    ]


def test_descriptors_are_computed_once(tmp_path, monkeypatch):
    file = tmp_path / "descriptors.npy"
    done = []
    first = kept_descriptors(SMILES[:5], file, processes=1, progress=done.append)
    assert sum(done) == 5
    np.testing.assert_array_equal(kept_descriptors(SMILES[:5], file, processes=1, progress=done.append), first)
    assert sum(done) == 5
    assert len(kept_descriptors(SMILES[:6], file, processes=1)) == 6  # of another size
    file.write_bytes(b"damaged")
    np.testing.assert_array_equal(kept_descriptors(SMILES[:5], file, processes=1), first)
    np.save(file, np.array([{}], dtype=object), allow_pickle=True)  # which is not loaded
    np.testing.assert_array_equal(kept_descriptors(SMILES[:5], file, processes=1), first)
