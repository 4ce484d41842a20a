"""Tasks: how predictions become a loss, numbers for a user, and metrics over a whole split."""

from collections.abc import Callable
from math import isnan

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from grit.errors import GritError
from grit.graphs.chunk import Array
from grit.graphs.schema import TaskSpec

METRICS_OF = {
    "regression": ("mae", "rmse", "r2"),
    "binary": ("accuracy", "accuracy-sbm", "auroc", "ap"),
    "multiclass": ("accuracy", "accuracy-sbm"),
    "multilabel": ("ap", "auroc"),
}


class Task:
    """Loss, outputs and metrics of a `TaskSpec`.

    Args:
        spec: What is predicted.
        mean: (T,) subtracted from regression targets before the loss; zeros where the task does not standardise.
        scale: (T,) by which they are divided.
    """

    def __init__(self, spec: TaskSpec, mean: Array | None = None, scale: Array | None = None) -> None:
        if spec.metric not in METRICS_OF[spec.kind]:
            raise GritError(f"{spec.kind} is measured by {', '.join(METRICS_OF[spec.kind])}, not by {spec.metric}.")
        self.spec = spec
        targets = len(spec.targets)
        self.mean = torch.zeros(targets) if mean is None else torch.as_tensor(mean, dtype=torch.float32)
        self.scale = torch.ones(targets) if scale is None else torch.as_tensor(scale, dtype=torch.float32)

    @classmethod
    def fitted(cls, spec: TaskSpec, targets: Array) -> "Task":
        """The task with mean and scale taken from training targets (R, T), if it standardises; constants are not scaled."""
        if not spec.standardise:
            return cls(spec)
        values = targets.astype(np.float64)
        if np.isnan(values).all(0).any():
            raise GritError("a target has no value in the training split; choose another split.")
        scale = np.nanstd(values, axis=0)
        return cls(spec, np.nanmean(values, axis=0), np.where(scale > 0, scale, 1.0))

    def loss(self, predicted: Tensor, target: Tensor) -> Tensor:
        """Mean loss of a batch: predicted (R, num_outputs), target (R, T) with NaN where missing."""
        total, weight = self.loss_terms(predicted, target)
        return total / weight

    def loss_terms(
        self, predicted: Tensor, target: Tensor, over_all: Callable[[Tensor], Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """Numerator and denominator of the loss; the loss of several parts of a batch is the ratio of their sums.

        Args:
            predicted: (R, num_outputs), as the model gives it.
            target: (R, T).
            over_all: Sums a tensor over all parts of the batch, for class weights; the parts are one if not given.
        """
        spec = self.spec
        if spec.kind == "regression":
            known = ~torch.isnan(target)
            wanted = (target - self.mean.to(target)) / self.scale.to(target)
            difference = torch.where(known, predicted - wanted, 0.0)
            terms = difference.abs() if spec.loss == "l1" else difference.square()
            return terms.sum(), known.sum().clamp(min=1)
        if spec.kind == "multiclass":
            return self._multiclass_terms(predicted, target, over_all)
        known = ~torch.isnan(target) if target.is_floating_point() else torch.ones_like(target, dtype=torch.bool)
        label = torch.where(known, target, 0).to(predicted.dtype)
        terms = F.binary_cross_entropy_with_logits(predicted, label, reduction="none")
        if spec.loss == "weighted_cross_entropy":
            weight = _class_weights(label[known].long(), 2, over_all).to(predicted.dtype)
            terms = terms * weight[label.long()]
        return torch.where(known, terms, 0.0).sum(), known.sum().clamp(min=1)

    def _multiclass_terms(
        self, predicted: Tensor, target: Tensor, over_all: Callable[[Tensor], Tensor] | None
    ) -> tuple[Tensor, Tensor]:
        label = target[:, 0]
        if label.is_floating_point():
            known = ~torch.isnan(label)
            predicted, label = predicted[known], label[known].long()
        terms = F.cross_entropy(predicted, label, reduction="none")
        if self.spec.loss == "cross_entropy":
            return terms.sum(), torch.tensor(max(1, label.numel()), device=terms.device)
        weight = _class_weights(label, len(self.spec.classes), over_all).to(terms.dtype)[label]
        # A batch of one class has no weight at all: its loss is 0, where the released code divides 0 by 0.
        return (terms * weight).sum(), weight.sum().clamp(min=torch.finfo(terms.dtype).tiny)

    def outputs(self, predicted: Tensor) -> Tensor:
        """What a user wants: numbers in the targets' own units, or probabilities; (R, num_outputs)."""
        if self.spec.kind == "regression":
            return predicted * self.scale.to(predicted) + self.mean.to(predicted)
        if self.spec.kind == "multiclass":
            return predicted.softmax(-1)
        return predicted.sigmoid()

    def metrics(self, outputs: Array, targets: Array) -> dict[str, float]:
        """All metrics of this kind of task over a whole split: outputs (R, num_outputs), targets (R, T).

        A metric that cannot be computed, such as the AUROC of a single class, is NaN.
        """
        return {
            name: METRICS[name](outputs.astype(np.float64), targets.astype(np.float64))
            for name in METRICS_OF[self.spec.kind]
        }

    def is_better(self, value: float, than: float | None) -> bool:
        """Whether a value of the metric beats the best so far."""
        if isnan(value):
            return False
        if than is None or isnan(than):
            return True
        return value > than if self.spec.higher_is_better else value < than


def _class_weights(label: Tensor, num_classes: int, over_all: Callable[[Tensor], Tensor] | None) -> Tensor:
    """w_c = (V - n_c) / V for classes that occur in the batch, 0 for others: (num_classes,)."""
    count = torch.bincount(label.flatten(), minlength=num_classes).double()
    if over_all is not None:
        count = over_all(count)
    return torch.where(count > 0, 1 - count / count.sum(), 0.0)


def _mae(outputs: Array, targets: Array) -> float:
    return _over_known(outputs, targets, lambda o, y: float(np.abs(o - y).mean()))


def _rmse(outputs: Array, targets: Array) -> float:
    return _over_known(outputs, targets, lambda o, y: float(np.sqrt(np.square(o - y).mean())))


def _r2(outputs: Array, targets: Array) -> float:
    from sklearn.metrics import r2_score

    return _per_target(
        outputs, targets, lambda o, y: float(r2_score(y, o)) if y.size > 1 and np.ptp(y) > 0 else float("nan")
    )


def _auroc(outputs: Array, targets: Array) -> float:
    from sklearn.metrics import roc_auc_score

    return _per_target(
        outputs, targets, lambda o, y: float(roc_auc_score(y, o)) if np.unique(y).size == 2 else float("nan")
    )


def _average_precision(outputs: Array, targets: Array) -> float:
    from sklearn.metrics import average_precision_score

    return _per_target(
        outputs, targets, lambda o, y: float(average_precision_score(y, o)) if np.unique(y).size == 2 else float("nan")
    )


def _accuracy(outputs: Array, targets: Array) -> float:
    guess, truth = _classes(outputs, targets)
    return float((guess == truth).mean()) if truth.size else float("nan")


def accuracy_sbm(guess: Array, truth: Array) -> float:
    """Mean over classes of the share found, over classes that occur as truth or guess; one that is only guessed counts 0."""
    classes = np.union1d(guess, truth)
    found = [float((guess[truth == c] == c).mean()) if (truth == c).any() else 0.0 for c in classes]
    return float(np.mean(found)) if found else float("nan")


def _accuracy_sbm(outputs: Array, targets: Array) -> float:
    return accuracy_sbm(*_classes(outputs, targets))


def _classes(outputs: Array, targets: Array) -> tuple[Array, Array]:
    known = ~np.isnan(targets[:, 0])
    guess = outputs.argmax(1) if outputs.shape[1] > 1 else (outputs[:, 0] > 0.5).astype(np.int64)
    return guess[known], targets[known, 0].astype(np.int64)


def _over_known(outputs: Array, targets: Array, metric: Callable[[Array, Array], float]) -> float:
    known = ~np.isnan(targets)
    return metric(outputs[known], targets[known]) if known.any() else float("nan")


def _per_target(outputs: Array, targets: Array, metric: Callable[[Array, Array], float]) -> float:
    """Plain mean over the targets for which the metric is defined."""
    values = [_over_known(outputs[:, column], targets[:, column], metric) for column in range(targets.shape[1])]
    defined = [value for value in values if not isnan(value)]
    return float(np.mean(defined)) if defined else float("nan")


METRICS: dict[str, Callable[[Array, Array], float]] = {
    "mae": _mae,
    "rmse": _rmse,
    "r2": _r2,
    "accuracy": _accuracy,
    "accuracy-sbm": _accuracy_sbm,
    "ap": _average_precision,
    "auroc": _auroc,
}
