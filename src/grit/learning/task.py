"""Tasks: how predictions become a loss, numbers for a user, and metrics over a whole split."""

from collections.abc import Iterable, Sequence
from math import isnan, log, nan
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from grit.errors import GritError
from grit.graphs.chunk import Array
from grit.graphs.schema import MIXED_LOSS, TargetPart, TaskSpec
from grit.learning.losses import LOSSES, Loss, SumOverProcesses
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
        self.spec, self.weighing = spec, weighing
        targets = len(spec.targets)
        self.mean = torch.zeros(targets) if mean is None else torch.as_tensor(mean, dtype=torch.float32)
        self.scale = torch.ones(targets) if scale is None else torch.as_tensor(scale, dtype=torch.float32)
        self._loss = _find_loss(spec, weighing)
        self.metric = _find_metric(spec)
        self._parts = [
            _Part(part, self._of_part(part), log(len(part.spec.classes)) if part.spec.classes else 1.0)
            for part in (spec.by_target() if spec.kind == "mixed" else [])
        ]

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
        if spec.kind == "mixed":
            parts = [cls.fitted(part.spec, targets[:, [part.column]]) for part in spec.by_target()]
            return cls(
                spec, np.concatenate([p.mean for p in parts]), np.concatenate([p.scale for p in parts]), weighing
            )
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
        if self._parts:
            each = [
                (unit, *task.loss_terms(predicted[:, part.outputs], target[:, [part.column]], over_all, weight))
                for part, task, unit in self._parts
            ]
            return torch.stack([t / unit for unit, t, _ in each]).sum(), torch.stack([c for *_, c in each]).sum()
        weights = None if self.weighing is None else self.weighing.weights(target, weight)
        if self.spec.kind == "regression":
            target = (target - self.mean.to(target)) / self.scale.to(target)
        assert self._loss is not None
        if weights is None or self._loss.weighted is None:
            return self._loss.terms(predicted, target, over_all)
        return self._loss.weighted(predicted, target, weights.to(predicted.dtype))

    def outputs(self, predicted: Tensor) -> Tensor:
        """What a user wants: numbers in the targets' own units, or probabilities; (R, num_outputs)."""
        if self._parts:
            return torch.cat([task.outputs(predicted[:, part.outputs]) for part, task, _ in self._parts], 1)
        if self.spec.kind == "regression":
            return predicted * self.scale.to(predicted) + self.mean.to(predicted)
        if self.spec.kind == "multiclass":
            return predicted.softmax(-1)
        return predicted.sigmoid()

    @property
    def measured_by(self) -> dict[str, Metric]:
        """Its metrics by name: its own, and those that every task of its kind is measured by."""
        if self._parts:
            return {name: metric for _, task, _ in self._parts for name, metric in task.measured_by.items()}
        return shown_metrics(self.spec.kind, self.spec.metric)

    def metrics(self, outputs: Array, targets: Array) -> dict[str, float]:
        """All metrics that this task is measured by over a whole split: outputs (R, num_outputs), targets (R, T).

        A metric that cannot be computed, such as the AUROC of a single class, is NaN.
        """
        outputs, targets = outputs.astype(np.float64), targets.astype(np.float64)
        if self._parts:
            found = [task.metrics(outputs[:, part.outputs], targets[:, [part.column]]) for part, task, _ in self._parts]
            return {name: _mean(each[name] for each in found if name in each) for name in _names(found)}
        return {name: metric.compute(outputs, targets) for name, metric in self.measured_by.items()}

    def _of_part(self, part: TargetPart) -> "Task":
        at = slice(part.column, part.column + 1)
        weighing = None if self.weighing is None else self.weighing.of_target(part)
        spec = part.spec.model_copy(update={"metric": self.spec.metric})
        return Task(spec, self.mean[at].numpy(), self.scale[at].numpy(), weighing)

    def is_better(self, value: float, than: float | None) -> bool:
        """Whether a value of the metric beats the best so far."""
        if isnan(value):
            return False
        if than is None or isnan(than):
            return True
        return value > than if self.metric.higher_is_better else value < than


class _Part(NamedTuple):
    """One target of several kinds, its task, and the loss of one who knows nothing, in units of which its loss counts."""

    part: TargetPart
    task: Task
    unit: float


def _find_loss(spec: TaskSpec, weighing: Weighing | None) -> Loss | None:
    """The loss of a task; None for targets of several kinds, each of which has its own."""
    if spec.kind == "mixed":
        if spec.loss != MIXED_LOSS:
            raise GritError(
                f"targets of several kinds have a loss each, not all the loss {spec.loss}: leave out train.loss."
            )
        return None
    losses = [name for name, loss in LOSSES.items() if spec.kind in loss.kinds]
    if spec.loss not in losses:
        raise GritError(f"{spec.kind} is trained with the loss {' or '.join(losses)}, not with {spec.loss}.")
    loss = LOSSES[spec.loss]
    if weighing is not None and loss.weighted is None:
        raise GritError(
            f"the loss {spec.loss} cannot weigh rows or classes; --weights and --balance go with l1, mse and cross_entropy."
        )
    return loss


def _find_metric(spec: TaskSpec) -> Metric:
    """The metric of a task, which must be for the kind of every target."""
    first, *_ = [find_metric(spec.metric, part.kind) for part in spec.parts or (spec,)]
    return first


def _names(found: Sequence[dict[str, float]]) -> list[str]:
    return list(dict.fromkeys(name for each in found for name in each))


def _mean(values: Iterable[float]) -> float:
    defined = [value for value in values if not isnan(value)]
    return sum(defined) / len(defined) if defined else nan
