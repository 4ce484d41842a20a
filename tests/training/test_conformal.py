"""Intervals and sets hold the truth as often as they promise, where old and new rows come from one source."""

import numpy as np
import pytest

from grit.errors import GritError
from grit.graphs.schema import TaskSpec
from grit.training.calibration import calibrated, read_calibration, with_intervals, with_temperature
from grit.training.conformal import check_confidence, fitted_temperature, rows_needed, score_bound, tempered
from grit.training.predictions import Predictions

NUMBERS = TaskSpec(kind="regression", targets=("y", "z"), loss="l1", metric="mae")
TWO = TaskSpec(kind="binary", targets=("y",), classes=("no", "yes"), loss="bce", metric="auroc")
THREE = TaskSpec(kind="multiclass", targets=("y",), classes=("a", "b", "c"), loss="cross_entropy", metric="accuracy")
LABELS = TaskSpec(kind="multilabel", targets=("p", "q"), loss="bce", metric="auroc")


def test_the_bound_is_the_finite_sample_quantile():
    scores = np.arange(1.0, 10.0)  # nine: the fewest for 90 %
    assert score_bound(scores, 0.9) == 9.0
    assert score_bound(scores[:-1], 0.9) == np.inf
    assert score_bound(scores, 0.5) == 5.0
    assert [rows_needed(each) for each in (0.5, 0.8, 0.9, 0.95, 0.99)] == [1, 4, 9, 19, 99]
    for count in range(1, 60):
        assert np.isfinite(score_bound(np.ones(count), 0.9)) == (count >= 9)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, 90.0, float("nan")])
def test_a_confidence_is_a_share(confidence):
    with pytest.raises(GritError, match="between 0 and 1, such as 0.9 for 90 %"):
        check_confidence(confidence)


def drawn_numbers(rng, count):
    """Predictions whose error grows with their spread; the second target is often unknown."""
    spread = rng.uniform(0.1, 2.0, (count, 2))
    outputs = rng.normal(size=(count, 2))
    truth = outputs + spread * rng.normal(size=(count, 2))
    truth[rng.random(count) < 0.4, 1] = np.nan
    return outputs, spread, truth


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.9])
@pytest.mark.parametrize("with_spread", [True, False])
def test_intervals_cover_what_they_promise(confidence, with_spread):
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(150):
        outputs, spread, truth = drawn_numbers(rng, 60)
        known = calibrated(NUMBERS, outputs, spread if with_spread else None, truth, confidence, "validation")
        outputs, spread, truth = drawn_numbers(rng, 60)
        found = with_intervals(NUMBERS, known, Predictions(outputs, spread if with_spread else None), confidence)
        inside = (found.low <= truth) & (truth <= found.high)
        covered.append([inside[np.isfinite(truth[:, k]), k].mean() for k in range(2)])
    mean = np.mean(covered, axis=0)
    # At least the confidence, and at most one rank more: 1 / (n + 1), n being 60 and about 36.
    assert (mean > confidence - 0.015).all()
    assert (mean < confidence + 1 / 30 + 0.015).all()


def test_intervals_are_wide_where_the_models_disagree():
    rng = np.random.default_rng(1)
    outputs, spread, truth = drawn_numbers(rng, 400)
    known = calibrated(NUMBERS, outputs, spread, truth, 0.9, "validation")
    found = with_intervals(NUMBERS, known, Predictions(np.zeros((2, 2)), np.array([[0.1, 0.1], [2.0, 2.0]])), 0.9)
    width = found.high - found.low
    assert (width[1] > 2 * width[0]).all()
    single = calibrated(NUMBERS, outputs, None, truth, 0.9, "validation")
    found = with_intervals(NUMBERS, single, Predictions(np.zeros((2, 2))), 0.9)
    np.testing.assert_allclose((found.high - found.low)[0], (found.high - found.low)[1])


def drawn_classes(rng, count, task):
    """Labels drawn from the probabilities that are predicted, some of them rare."""
    if task.kind == "multiclass":
        chances = rng.dirichlet([2.0, 1.0, 0.2], count)
        return chances, np.array([[rng.choice(3, p=each)] for each in chances], dtype=float)
    chances = rng.beta(0.5, 2.0, (count, len(task.targets)))
    truth = (rng.random(chances.shape) < chances).astype(float)
    truth[rng.random(truth.shape) < 0.2] = np.nan
    return chances, truth


@pytest.mark.parametrize("task", [TWO, THREE, LABELS], ids=lambda task: task.kind)
def test_sets_hold_every_class_as_often_as_they_promise(task):
    rng = np.random.default_rng(2)
    inside = [[] for _ in range(max(2, len(task.classes)))]
    for _ in range(60):
        known = calibrated(task, *_with_no_spread(drawn_classes(rng, 200, task)), 0.8, "validation")
        chances, truth = drawn_classes(rng, 200, task)
        found = with_intervals(task, known, Predictions(with_temperature(task, known, chances)), 0.8)
        for number, members in enumerate(found.sets):
            for row in np.flatnonzero(np.isfinite(truth[:, number])):
                inside[int(truth[row, number])].append(members[row, int(truth[row, number])])
            assert members.any(1).all()
    assert all(np.mean(each) >= 0.78 for each in inside)


def _with_no_spread(drawn):
    return drawn[0], None, drawn[1]


def test_a_temperature_undoes_overconfidence():
    rng = np.random.default_rng(3)
    chances = rng.dirichlet([1.0, 1.0, 1.0], 4000)
    truth = np.array([rng.choice(3, p=each) for each in chances], dtype=float)
    assert fitted_temperature(truth, chances) == pytest.approx(1.0, abs=0.1)
    assert fitted_temperature(truth, tempered(chances, 0.5)) == pytest.approx(2.0, rel=0.1)
    np.testing.assert_allclose(tempered(tempered(chances, 0.5), 2.0), chances, atol=1e-6)


def test_few_rows_that_are_all_right_do_not_make_it_sure():
    chances = np.array([[0.9, 0.1], [0.2, 0.8]])
    assert 0.3 < fitted_temperature(np.array([0.0, 1.0]), chances) < 1.0
    assert fitted_temperature(np.array([np.nan, np.nan]), chances) == 1.0


@pytest.mark.parametrize("task", [NUMBERS, TWO, THREE, LABELS], ids=lambda task: task.kind)
@pytest.mark.parametrize("rows", [0, 1, 2])
def test_hardly_anything_held_out_is_no_error(task, rows, tmp_path):
    outputs = np.full((rows, task.num_outputs), 1 / 3)
    truth = np.zeros((rows, len(task.targets)))
    known = calibrated(task, outputs, np.zeros_like(outputs), truth, 0.9, "validation")
    assert "needs 9 held-out molecules" in str(known.too_few(task, 0.9))
    known.write(tmp_path)
    assert read_calibration(tmp_path, task) == known
    found = with_intervals(task, known, Predictions(np.full((1, task.num_outputs), 1 / 3)), 0.9)
    if task.kind == "regression":
        assert np.isinf(found.low).all()
    else:
        assert all(each.all() for each in found.sets)  # nothing can be excluded


def test_a_damaged_calibration(tmp_path):
    calibrated(TWO, np.zeros((0, 1)), None, np.zeros((0, 1)), 0.9, "validation").write(tmp_path)
    with pytest.raises(GritError, match="is of another model"):
        read_calibration(tmp_path, THREE)
    (tmp_path / "calibration.json").write_text('{"confidence": 2}')
    with pytest.raises(GritError, match=r"calibration.json' cannot be read"):
        read_calibration(tmp_path, TWO)
