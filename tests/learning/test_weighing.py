"""Weights of rows and of classes in the loss."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from grit.errors import GritError
from grit.graphs.schema import TaskSpec
from grit.learning.task import Task
from grit.learning.weighing import fit_weighing

NAN = float("nan")
NUMBERS = TaskSpec(kind="regression", targets=("a", "b"), loss="l1", metric="mae")
BINARY = TaskSpec(kind="binary", targets=("y",), classes=("no", "yes"), loss="cross_entropy", metric="auroc")
LABELS = TaskSpec(kind="multilabel", targets=("a", "b"), loss="cross_entropy", metric="auroc")
CLASSES = TaskSpec(kind="multiclass", targets=("y",), classes=("r", "g", "b"), loss="cross_entropy", metric="accuracy")


def column(*values):
    return np.array(values, dtype=np.float64)[:, None]


class TestRows:
    def test_by_hand(self):
        target = np.array([[1.0, 2.0], [3.0, NAN], [5.0, 6.0]])
        task = Task.fitted(NUMBERS, target, weights=np.array([1.0, 0.0, 2.0]))
        predicted = torch.zeros(3, 2, dtype=torch.float64)
        # Weights 1, 0, 2 have the mean 1; five targets are known.
        loss = task.loss(predicted, torch.from_numpy(target), torch.tensor([1.0, 0.0, 2.0]))
        assert float(loss) == pytest.approx((1 * 1 + 1 * 2 + 0 * 3 + 2 * 5 + 2 * 6) / 5)

    @given(st.floats(1e-3, 1e3), arrays(np.float64, 6, elements=st.floats(0.1, 10)))
    def test_only_their_ratios_matter(self, factor, weights):
        target = np.arange(12.0).reshape(6, 2)
        predicted = torch.ones(6, 2, dtype=torch.float64)
        losses = [
            float(
                Task.fitted(NUMBERS, target, weights=each).loss(
                    predicted, torch.from_numpy(target), torch.from_numpy(each)
                )
            )
            for each in (weights, factor * weights)
        ]
        assert losses[0] == pytest.approx(losses[1], rel=1e-6)

    @pytest.mark.parametrize("spec", [NUMBERS, LABELS, CLASSES, BINARY])
    def test_equal_weights_are_none(self, spec):
        rng = np.random.default_rng(0)
        target = rng.integers(0, 2, (8, len(spec.targets))).astype(np.float64)
        predicted = torch.from_numpy(rng.normal(size=(8, spec.num_outputs)))
        plain = Task.fitted(spec, target).loss(predicted, torch.from_numpy(target))
        sevens = np.full(8, 7.0)
        weighed = Task.fitted(spec, target, weights=sevens).loss(
            predicted, torch.from_numpy(target), torch.from_numpy(sevens)
        )
        assert float(weighed) == pytest.approx(float(plain))

    def test_a_row_twice_is_a_row_of_weight_two(self):
        """With the mean that follows from it."""
        rng = np.random.default_rng(1)
        target, predicted = rng.integers(0, 3, (5, 1)).astype(float), rng.normal(size=(5, 3))
        twice = [0, 1, 2, 3, 4, 4]
        many = Task(CLASSES).loss(torch.from_numpy(predicted[twice]), torch.from_numpy(target[twice]))
        weights = np.array([1.0, 1, 1, 1, 2])
        task = Task.fitted(CLASSES, target, weights=weights)
        few = task.loss(torch.from_numpy(predicted), torch.from_numpy(target), torch.from_numpy(weights))
        assert float(few) == pytest.approx(float(many))

    def test_rows_of_no_weight_give_no_loss(self):
        task = Task.fitted(BINARY, column(0, 1), weights=np.array([0.0, 1.0]))
        assert float(task.loss(torch.ones(1, 1), torch.zeros(1, 1), torch.zeros(1))) == 0.0

    def test_all_zero_is_refused(self):
        with pytest.raises(GritError, match="weights of all training rows are 0"):
            Task.fitted(BINARY, column(0, 1), weights=np.zeros(2))

    def test_a_batch_without_them_is_refused(self):
        task = Task.fitted(BINARY, column(0, 1), weights=np.ones(2))
        with pytest.raises(GritError, match="the batch has none"):
            task.loss(torch.ones(1, 1), torch.zeros(1, 1))

    def test_a_loss_that_cannot_is_refused(self):
        spec = BINARY.model_copy(update={"loss": "weighted_cross_entropy"})
        with pytest.raises(GritError, match="weighted_cross_entropy cannot weigh rows or classes"):
            Task.fitted(spec, column(0, 1), balance=True)


class TestBalance:
    def test_each_class_has_the_same_total(self):
        weighing = fit_weighing(BINARY, column(0, 0, 0, 1, NAN), None, balance=True)
        assert weighing.classes.tolist() == [[4 / (2 * 3), 4 / (2 * 1)]]
        weights = weighing.weights(torch.tensor([[0.0], [1.0], [NAN]]), None)
        assert weights[:2, 0].tolist() == pytest.approx([2 / 3, 2.0])

    def test_every_target_has_its_own(self):
        targets = np.array([[0, 1], [0, 1], [0, NAN], [1, 0]])
        assert fit_weighing(LABELS, targets, None, balance=True).classes.tolist() == pytest.approx(
            [pytest.approx([4 / 6, 2.0]), pytest.approx([1.5, 0.75])]
        )

    def test_classes_that_do_not_occur_take_no_part(self):
        weighing = fit_weighing(CLASSES, column(0, 0, 0, 2), None, balance=True)
        assert weighing.classes[0, [0, 2]].tolist() == pytest.approx([4 / 6, 2.0])

    def test_rows_count_by_their_weights(self):
        weights = np.array([1.0, 1.0, 2.0])
        weighing = fit_weighing(BINARY, column(0, 0, 1), weights, balance=True)
        assert weighing.classes.tolist() == [[1.0, 1.0]]

    @given(st.lists(st.integers(0, 2), min_size=3, max_size=30))
    def test_the_mean_over_the_training_set_is_one(self, labels):
        targets = column(*labels)
        weights = fit_weighing(CLASSES, targets, None, balance=True).weights(torch.from_numpy(targets), None)
        assert float(weights.mean()) == pytest.approx(1.0)
        totals = [float(weights[targets[:, 0] == c].sum()) for c in set(labels)]
        assert totals == pytest.approx([totals[0]] * len(totals))

    def test_a_regression_has_no_classes(self):
        with pytest.raises(GritError, match="--balance .* is for classes, and this is a regression"):
            Task.fitted(NUMBERS, np.ones((3, 2)), balance=True)

    def test_it_is_said(self):
        said = fit_weighing(BINARY, column(0, 0, 0, 1), None, balance=True).describe(BINARY)
        assert said == "classes count in the loss by their rarity in the training set: y no x 0.667, yes x 2"
