"""Tasks: how predictions become a loss, numbers for a user, and metrics over a whole split."""

from math import isnan

import numpy as np
import torch
from torch import Tensor

from grit.errors import GritError
from grit.graphs.chunk import Array
from grit.graphs.schema import TaskSpec
from grit.learning.losses import LOSSES, SumOverProcesses
from grit.learning.metrics import Metric, find_metric, shown_metrics
from grit.learning.weighing import Weighing, fit_weighing


class Task:
    """Loss, outputs and metrics of a `TaskSpec`.

    Args:
        spec: What is predicted.
        mean: (T,) subtracted from regression targets before the loss; zeros where the task does not standardise.
        scale: (T,) by which they are divided.
        weighing: How targets count in the loss, where they do not count alike.
    """

    def __init__(
        self,
        spec: TaskSpec,
        mean: Array | None = None,
        scale: Array | None = None,
        weighing: Weighing | None = None,
    ) -> None:
        losses = [name for name, loss in LOSSES.items() if spec.kind in loss.kinds]
        if spec.loss not in losses:
            raise GritError(f"{spec.kind} is trained with the loss {' or '.join(losses)}, not with {spec.loss}.")
        self._loss = LOSSES[spec.loss]
        if weighing is not None and self._loss.weighted is None:
            raise GritError(
                f"the loss {spec.loss} cannot weigh rows or classes; --weights and --balance go with l1, mse and cross_entropy."
            )
        self.weighing = weighing
        self.metric = find_metric(spec.metric, spec.kind)
        self.spec = spec
        targets = len(spec.targets)
        self.mean = torch.zeros(targets) if mean is None else torch.as_tensor(mean, dtype=torch.float32)
        self.scale = torch.ones(targets) if scale is None else torch.as_tensor(scale, dtype=torch.float32)

    @classmethod
    def fitted(cls, spec: TaskSpec, targets: Array, *, weights: Array | None = None, balance: bool = False) -> "Task":
        """The task with mean and scale taken from training targets, if it standardises; constants are not scaled.

        Args:
            spec: What is predicted.
            targets: (R, T) of the training set.
            weights: (R,) how much each row counts in the loss; None where all count alike.
            balance: Whether the classes of each target count alike in the loss, however many rows they have.
        """
        weighing = fit_weighing(spec, targets, weights, balance=balance)
        if not spec.standardise:
            return cls(spec, weighing=weighing)
        values = targets.astype(np.float64)
        if np.isnan(values).all(0).any():
            raise GritError("a target has no value in the training split; choose another split.")
        scale = np.nanstd(values, axis=0)
        return cls(spec, np.nanmean(values, axis=0), np.where(scale > 0, scale, 1.0), weighing)

    def loss(self, predicted: Tensor, target: Tensor, weight: Tensor | None = None) -> Tensor:
        """Mean loss of a batch: predicted (R, num_outputs), target (R, T) with NaN where missing, weight (R,) of the rows."""
        total, count = self.loss_terms(predicted, target, weight=weight)
        return total / count

    def loss_terms(
        self,
        predicted: Tensor,
        target: Tensor,
        over_all: SumOverProcesses = lambda value: value,
        weight: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Numerator and denominator of the loss; the loss of several parts of a batch is the ratio of their sums.

        Args:
            predicted: (R, num_outputs), as the model gives it.
            target: (R, T).
            over_all: Sums a tensor over all parts of the batch; the parts are one if not given.
            weight: (R,) how much each row counts, if the task was fitted with weights.
        """
        weights = None if self.weighing is None else self.weighing.weights(target, weight)
        if self.spec.kind == "regression":
            target = (target - self.mean.to(target)) / self.scale.to(target)
        if weights is None or self._loss.weighted is None:
            return self._loss.terms(predicted, target, over_all)
        return self._loss.weighted(predicted, target, weights.to(predicted.dtype))

    def outputs(self, predicted: Tensor) -> Tensor:
        """What a user wants: numbers in the targets' own units, or probabilities; (R, num_outputs)."""
        if self.spec.kind == "regression":
            return predicted * self.scale.to(predicted) + self.mean.to(predicted)
        if self.spec.kind == "multiclass":
            return predicted.softmax(-1)
        return predicted.sigmoid()

    @property
    def measured_by(self) -> dict[str, Metric]:
        """Its metrics by name: its own, and those that every task of its kind is measured by."""
        return shown_metrics(self.spec.kind, self.spec.metric)

    def metrics(self, outputs: Array, targets: Array) -> dict[str, float]:
        """All metrics that this task is measured by over a whole split: outputs (R, num_outputs), targets (R, T).

        A metric that cannot be computed, such as the AUROC of a single class, is NaN.
        """
        outputs, targets = outputs.astype(np.float64), targets.astype(np.float64)
        return {name: metric.compute(outputs, targets) for name, metric in self.measured_by.items()}

    def is_better(self, value: float, than: float | None) -> bool:
        """Whether a value of the metric beats the best so far."""
        if isnan(value):
            return False
        if than is None or isnan(than):
            return True
        return value > than if self.metric.higher_is_better else value < than
