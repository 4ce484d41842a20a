"""Bootstrap intervals: against scipy, in coverage, and where there is little to draw from."""

import math

import numpy as np
import pytest
from scipy import stats

from grit.graphs.schema import TaskSpec
from grit.learning.bootstrap import affordable_resamples, compare_pair, measure
from grit.learning.metrics import METRICS, Metric

NUMBERS = TaskSpec(kind="regression", targets=("a",), loss="l1", metric="mae")
TWO_NUMBERS = TaskSpec(kind="regression", targets=("a", "b"), loss="l1", metric="mae")
CLASS = TaskSpec(kind="binary", targets=("a",), classes=("n", "y"), loss="cross_entropy", metric="auroc")
LABELS = TaskSpec(kind="multilabel", targets=("a", "b"), loss="cross_entropy", metric="auroc")
CLASSES = TaskSpec(
    kind="multiclass", targets=("a",), classes=("x", "y", "z"), loss="cross_entropy", metric="balanced-accuracy"
)


def numbers(rows, columns=1, seed=0):
    random = np.random.default_rng(seed)
    targets = random.normal(size=(rows, columns))
    return targets + random.normal(size=(rows, columns)), targets


def labels(rows, columns=1, seed=0):
    random = np.random.default_rng(seed)
    targets = random.integers(0, 2, (rows, columns)).astype(float)
    return np.clip(0.5 + 0.3 * (targets - 0.5) + 0.2 * random.normal(size=targets.shape), 0, 1), targets


def test_the_interval_is_scipys_percentile_bootstrap():
    outputs, targets = numbers(80)
    expected = stats.bootstrap(
        (np.abs(outputs - targets)[:, 0],), np.mean, n_resamples=4000, method="percentile", rng=1
    ).confidence_interval
    found = measure(NUMBERS, outputs, targets, resamples=4000).average["mae"]
    assert found.value == pytest.approx(np.abs(outputs - targets).mean())
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=0.02)
    wider = measure(NUMBERS, outputs, targets, confidence=0.99).average["mae"]
    assert wider.low < found.low < found.value < found.high < wider.high


def test_intervals_cover_the_truth():
    truth = math.sqrt(2 / math.pi)  # mean absolute value of a standard normal number
    found = [
        measure(NUMBERS, *numbers(60, seed=seed), resamples=200, confidence=0.9).average["mae"] for seed in range(200)
    ]
    assert 0.82 < np.mean([each.low <= truth <= each.high for each in found]) < 0.96


def test_the_same_rows_give_the_same_interval():
    outputs, targets = labels(50)
    assert measure(CLASS, outputs, targets) == measure(CLASS, outputs, targets)
    assert measure(CLASS, outputs, targets) != measure(CLASS, outputs, targets, seed=1)


def test_each_target_has_its_own_metrics_and_missing_labels_do_not_count():
    outputs, targets = numbers(60, 2)
    targets[:20, 1] = math.nan
    found = measure(TWO_NUMBERS, outputs, targets)
    assert found.labels == {"a": 60, "b": 40}
    alone = measure(NUMBERS, outputs[:, :1], targets[:, :1])
    assert found.targets["a"] == alone.targets["a"]
    errors = np.abs(outputs - targets)
    assert found.targets["b"]["mae"].value == pytest.approx(np.nanmean(errors[:, 1]))
    assert found.average["mae"].value == pytest.approx(np.nanmean(errors))  # of all labels together
    r2 = [found.targets[name]["r2"].value for name in ("a", "b")]
    assert found.average["r2"].value == pytest.approx(np.mean(r2))
    for each in found.average.values():
        assert each.low < each.value < each.high


@pytest.mark.parametrize(("task", "draw"), [(TWO_NUMBERS, numbers), (LABELS, labels)])
def test_the_average_of_resamples_is_that_of_the_definition(task, draw):
    """With every resample drawn by hand, from the same seed."""
    outputs, targets = draw(30, 2)
    targets[::4, 0] = math.nan
    random = np.random.default_rng(7)
    rows = [random.integers(0, 30, 30) for _ in range(200)]
    found = measure(task, outputs, targets, resamples=200, seed=7)
    for name, each in found.average.items():
        values = [METRICS[name].compute(outputs[drawn], targets[drawn]) for drawn in rows]
        assert (each.low, each.high) == pytest.approx(np.nanquantile(values, [0.025, 0.975]).tolist()), name


def test_several_classes():
    random = np.random.default_rng(0)
    targets = random.integers(0, 3, (90, 1)).astype(float)
    outputs = np.eye(3)[targets[:, 0].astype(int)] * 0.3 + random.dirichlet([1, 1, 1], 90) * 0.7
    found = measure(CLASSES, outputs, targets)
    assert found.average == found.targets["a"]
    assert all(
        each.low <= each.value <= each.high for name, each in found.average.items() if name != "calibration-error"
    )


def test_one_class_has_no_auroc_and_no_interval():
    outputs, _ = labels(40)
    found = measure(CLASS, outputs, np.ones((40, 1)))
    assert all(math.isnan(number) for number in found.average["auroc"])
    assert found.average["accuracy"].low > 0


def test_a_rare_class_is_missing_from_some_resamples():
    outputs, targets = np.linspace(0, 1, 50)[:, None], np.zeros((50, 1))
    targets[-3] = 1  # in a resample with a chance of about 0.64
    found = measure(CLASS, outputs, targets).average["auroc"]
    assert found.value == pytest.approx(47 / 49)
    assert 0.8 < found.low <= found.high <= 1


def test_few_labels_have_no_interval():
    found = measure(NUMBERS, *numbers(9)).average["mae"]
    assert not math.isnan(found.value)
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert not math.isnan(measure(NUMBERS, *numbers(10)).average["mae"].low)


def test_no_rows_and_no_resamples():
    empty = measure(NUMBERS, np.zeros((0, 1)), np.zeros((0, 1)))
    assert math.isnan(empty.average["mae"].value)
    assert measure(NUMBERS, *numbers(20), resamples=0).average["mae"].low != 0
    assert math.isnan(measure(NUMBERS, *numbers(20), resamples=0).average["mae"].low)


def test_large_tables_get_fewer_resamples():
    assert affordable_resamples(1000, 20_000) == 1000
    assert affordable_resamples(1000, 40_000) == 500
    assert affordable_resamples(1000, 10**9) == 50
    assert affordable_resamples(0, 10) == 0


def test_a_metric_of_a_plugin_has_an_interval(monkeypatch):
    slow = Metric(("regression",), METRICS["mae"].compute, higher_is_better=False)
    monkeypatch.setitem(METRICS, "mine", slow)
    found = measure(NUMBERS, *numbers(30)).average
    assert found["mine"] == pytest.approx(found["mae"])


def test_a_better_predictor_is_told_from_chance():
    outputs, targets = numbers(200)
    better = targets + 0.5 * (outputs - targets)
    found = compare_pair(NUMBERS, better, outputs, targets)
    errors = np.abs(outputs - targets).mean()
    assert found.value == pytest.approx(-errors / 2)
    assert found.high < 0
    assert found.p < 0.01
    other = compare_pair(NUMBERS, outputs, better, targets)
    assert other.value == pytest.approx(-found.value)
    assert other.p == pytest.approx(found.p)


def test_the_same_predictor_differs_by_chance_alone():
    outputs, targets = labels(60)
    assert compare_pair(CLASS, outputs, outputs, targets).p == 1.0
    again = np.clip(outputs + np.random.default_rng(3).normal(size=outputs.shape) * 1e-3, 0, 1)
    assert compare_pair(CLASS, outputs, again, targets).p > 0.05


def test_p_values_are_uniform_without_a_difference():
    found = [
        compare_pair(
            NUMBERS,
            numbers(50, seed=seed)[1] * 0 + np.random.default_rng(1000 + seed).normal(size=(50, 1)),
            np.random.default_rng(5000 + seed).normal(size=(50, 1)),
            np.zeros((50, 1)),
            resamples=200,
        ).p
        for seed in range(150)
    ]
    assert 0.0 <= np.mean(np.array(found) < 0.1) < 0.2


def test_too_few_rows_for_a_test():
    found = compare_pair(NUMBERS, *numbers(5), np.zeros((5, 1)))
    assert math.isnan(found.p)
    assert not math.isnan(found.value)
