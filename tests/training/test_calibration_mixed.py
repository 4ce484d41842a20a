"""Intervals and sets of targets of several kinds are those that each target would have alone."""

import numpy as np
import pytest

from grit.graphs.schema import TaskSpec
from grit.training.calibration import calibrated, read_calibration, with_intervals, with_temperature
from grit.training.predictions import Predictions

NUMBER = TaskSpec(kind="regression", targets=("a",), loss="l1", metric="mae", standardise=True)
COLOUR = TaskSpec(kind="multiclass", targets=("c",), classes=("r", "g", "b"), loss="cross_entropy", metric="accuracy")
BINARY = TaskSpec(kind="binary", targets=("b",), classes=("no", "yes"), loss="cross_entropy", metric="auroc")
MIXED = TaskSpec(
    kind="mixed", targets=("c", "a", "b"), loss="standardised", metric="skill", parts=(COLOUR, NUMBER, BINARY)
)
PLACES = ((COLOUR, 0, slice(0, 3)), (NUMBER, 1, slice(3, 4)), (BINARY, 2, slice(4, 5)))


@pytest.fixture
def held_out():
    rng = np.random.default_rng(0)
    truth = np.stack([rng.integers(0, 3, 90), rng.normal(5, 2, 90), rng.integers(0, 2, 90)], 1).astype(float)
    truth[::7, 1] = np.nan
    outputs = np.concatenate([rng.dirichlet((1, 1, 1), 90), rng.normal(5, 2, (90, 1)), rng.random((90, 1))], 1)
    return outputs, rng.random((90, 5)), truth


def test_each_as_if_alone(held_out, tmp_path):
    outputs, spread, truth = held_out
    whole = calibrated(MIXED, outputs, spread, truth, 0.8, "validation")
    tempered = with_temperature(MIXED, whole, outputs)
    found = with_intervals(MIXED, whole, Predictions(tempered, spread), 0.8)
    for spec, column, at in PLACES:
        alone = calibrated(spec, outputs[:, at], spread[:, at], truth[:, [column]], 0.8, "validation")
        assert whole.targets[column] == alone.targets[0]
        np.testing.assert_array_equal(tempered[:, at], with_temperature(spec, alone, outputs[:, at]))
        one = with_intervals(spec, alone, Predictions(tempered[:, at], spread[:, at]), 0.8)
        if spec.kind == "regression":
            assert one.sets is None
            np.testing.assert_array_equal(found.low[:, column], one.low[:, 0])
            np.testing.assert_array_equal(found.high[:, column], one.high[:, 0])
        else:
            assert one.low is None
            np.testing.assert_array_equal(found.sets[column], one.sets[0])
            assert np.isnan(found.low[:, column]).all()
    whole.write(tmp_path)
    assert read_calibration(tmp_path, MIXED) == whole


def test_too_few_are_named(held_out):
    outputs, spread, truth = (each[:8] for each in held_out)
    few = calibrated(MIXED, outputs, spread, truth, 0.9, "validation").too_few(MIXED, 0.9)
    assert "c of class r" in few
    assert "a 6" in few
