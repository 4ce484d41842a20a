"""Metrics against scikit-learn and values by hand; resamples against the definition applied to each of them."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grit.graphs.schema import TaskSpec
from grit.learning.metrics import METRICS, metrics_of, shown_metrics
from grit.learning.task import Task

KINDS = ("regression", "binary", "multiclass", "multilabel")
TRUE = np.array([0, 0, 0, 1, 1, 1, 1, math.nan])[:, None]
CHANCE = np.array([0.1, 0.4, 0.7, 0.2, 0.6, 0.9, 0.9, 0.3])[:, None]  # 2 of 3 negatives and 3 of 4 positives are right


def rows_of(kind, rows, seed, *, coarse):
    """Outputs and targets, with ties where coarse, with missing targets, and possibly with a class that never occurs."""
    random = np.random.default_rng(seed)
    columns, classes = {"regression": (2, 0), "binary": (1, 2), "multiclass": (1, 3), "multilabel": (2, 2)}[kind]
    if kind == "regression":
        outputs, targets = random.normal(size=(2, rows, columns)).round(1 if coarse else 8)
    else:
        targets = random.integers(0, random.integers(1, classes + 1), (rows, columns)).astype(float)
        outputs = random.random((rows, columns if kind != "multiclass" else classes)).round(1 if coarse else 8)
        if kind == "multiclass":
            outputs = (outputs + 0.01) / (outputs + 0.01).sum(1, keepdims=True)
    targets[random.random(targets.shape) < 0.2] = math.nan
    return outputs, targets


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("accuracy", 5 / 7),
        ("balanced-accuracy", (2 / 3 + 3 / 4) / 2),
        ("mcc", (3 * 2 - 1 * 1) / math.sqrt(4 * 4 * 3 * 3)),
        ("f1", 2 * 3 / (4 + 4)),
        ("log-loss", -np.log([0.9, 0.6, 0.3, 0.2, 0.6, 0.9, 0.9]).mean()),
        # Bins of 1/15: every probability has its own, but for the two of 0.9, and 0.4 and 0.6 are in bins 6 and 9.
        ("calibration-error", (0.1 + 0.4 + 0.7 + 0.8 + 0.4 + 0.2) / 7),
        ("auroc", (4 + 3 + 2) / 12),
    ],
)
def test_binary_metrics_by_hand(name, expected):
    assert METRICS[name].compute(CHANCE, TRUE) == pytest.approx(expected)


def test_several_classes_by_hand():
    outputs = np.array([[0.8, 0.1, 0.1], [0.2, 0.5, 0.3], [0.1, 0.7, 0.2], [0.1, 0.2, 0.7]])
    targets = np.array([[0.0], [1.0], [2.0], [2.0]])
    assert METRICS["balanced-accuracy"].compute(outputs, targets) == pytest.approx((1 + 1 + 0.5) / 3)
    assert METRICS["log-loss"].compute(outputs, targets) == pytest.approx(-np.log([0.8, 0.5, 0.2, 0.7]).mean())
    # Of the likeliest class: 0.8, 0.5, 0.7 and 0.7; the two of 0.7 share a bin in which one of two came true.
    assert METRICS["calibration-error"].compute(outputs, targets) == pytest.approx((0.2 + 0.5 + 0.4) / 4)


def test_metrics_are_those_of_scikit_learn():
    from scipy.stats import spearmanr
    from sklearn import metrics

    outputs, targets = np.random.default_rng(0).random((50, 1)), np.random.default_rng(1).integers(0, 2, (50, 1))
    guess, y = outputs[:, 0] > 0.5, targets[:, 0]
    for name, expected in {
        "balanced-accuracy": metrics.balanced_accuracy_score(y, guess),
        "mcc": metrics.matthews_corrcoef(y, guess),
        "f1": metrics.f1_score(y, guess),
        "log-loss": metrics.log_loss(y, outputs[:, 0]),
    }.items():
        assert METRICS[name].compute(outputs, targets.astype(float)) == pytest.approx(expected)
    numbers = np.random.default_rng(2).normal(size=(50, 1))
    assert METRICS["spearman"].compute(outputs, numbers) == pytest.approx(spearmanr(outputs, numbers).statistic)


def test_a_sure_and_wrong_prediction_has_a_finite_log_loss():
    assert 10 < METRICS["log-loss"].compute(np.array([[1.0]]), np.array([[0.0]])) < 20


def test_a_ranking_without_differences_has_no_correlation():
    assert math.isnan(METRICS["spearman"].compute(np.ones((5, 1)), np.arange(5.0)[:, None]))


def test_a_table_of_two_classes_is_not_measured_by_the_metric_of_a_benchmark():
    shown = shown_metrics("binary", "auroc")
    assert {"auroc", "ap", "balanced-accuracy", "mcc", "f1", "log-loss", "calibration-error", "accuracy"} == set(shown)
    assert "accuracy-sbm" in shown_metrics("binary", "accuracy-sbm")
    task = Task(TaskSpec(kind="binary", targets=("a",), classes=("n", "y"), loss="cross_entropy", metric="auroc"))
    assert "accuracy-sbm" not in task.metrics(CHANCE, TRUE)


@pytest.mark.parametrize("kind", KINDS)
@given(rows=st.integers(1, 25), seed=st.integers(0, 10_000), coarse=st.booleans())
@settings(max_examples=40)
def test_resamples_give_what_the_definition_gives_for_their_rows(kind, rows, seed, coarse):
    outputs, targets = rows_of(kind, rows, seed, coarse=coarse)
    random = np.random.default_rng(seed)
    known = np.flatnonzero(~np.isnan(targets[:, 0]))
    draws = [random.integers(0, len(known), len(known)) for _ in range(5)] if known.size else [known] * 5
    counts = np.stack([np.bincount(draw, minlength=len(known)) for draw in draws]).astype(float)
    of_one = outputs if kind == "multiclass" else outputs[:, :1]
    for name, metric in metrics_of(kind).items():
        assert metric.resampled is not None, name
        given_outputs = of_one[known] if kind == "multiclass" else of_one[known, 0]
        found = metric.resampled(given_outputs, targets[known, 0], counts)
        expected = [metric.compute(of_one[known[draw]], targets[known[draw], :1]) for draw in draws]
        assert found == pytest.approx(expected, nan_ok=True, abs=1e-9, rel=1e-7), name
