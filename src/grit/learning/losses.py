"""Losses: the table `LOSSES`.

A loss gives a numerator and a denominator, so that the loss of a batch that several processes share is the ratio of their sums.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

SumOverProcesses = Callable[[Tensor], Tensor]
LossTerms = Callable[[Tensor, Tensor, SumOverProcesses], tuple[Tensor, Tensor]]
WeightedTerms = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Loss:
    """One entry of `LOSSES`.

    Attributes:
        kinds: The kinds of task that it is for: regression, binary, multiclass, multilabel.
        terms: (predicted, target, over_all) -> numerator and denominator of the mean. ``predicted`` (R, num_outputs) is what the
            model gives, ``target`` (R, T) has NaN where it is missing, standardised if the task says so. ``over_all`` sums a
            tensor over the processes that share the batch.
        weighted: (predicted, target, weight) -> the same where targets count by ``weight`` (R, T), 0 or more, which is 1 on
            average over the training set: the denominator counts known targets, whatever they weigh. None for a loss that cannot.
    """

    kinds: tuple[str, ...]
    terms: LossTerms
    weighted: WeightedTerms | None = None


def elementwise(function: Callable[[Tensor], Tensor]) -> LossTerms:
    """A regression loss from a function of the differences, (R, T) -> (R, T)."""

    def terms(predicted: Tensor, target: Tensor, over_all: SumOverProcesses) -> tuple[Tensor, Tensor]:
        known = ~torch.isnan(target)
        return function(torch.where(known, predicted - target, 0.0)).sum(), known.sum().clamp(min=1)

    return terms


def weighted_elementwise(function: Callable[[Tensor], Tensor]) -> WeightedTerms:
    """The same where targets count by a weight."""

    def terms(predicted: Tensor, target: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        known = ~torch.isnan(target)
        each = function(torch.where(known, predicted - target, 0.0))
        return torch.where(known, each * weight, 0.0).sum(), known.sum().clamp(min=1)

    return terms


def _cross_entropy_by_weight(predicted: Tensor, target: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    if predicted.shape[1] != target.shape[1]:
        terms, label = _softmax_terms(predicted, target)
        known = ~torch.isnan(target[:, 0]) if target.is_floating_point() else slice(None)
        return (terms * weight[known, 0]).sum(), torch.tensor(max(1, label.numel()), device=terms.device)
    terms, known, _ = _sigmoid_terms(predicted, target)
    return torch.where(known, terms * weight, 0.0).sum(), known.sum().clamp(min=1)


def _cross_entropy(predicted: Tensor, target: Tensor, over_all: SumOverProcesses) -> tuple[Tensor, Tensor]:
    if predicted.shape[1] != target.shape[1]:
        terms, label = _softmax_terms(predicted, target)
        return terms.sum(), torch.tensor(max(1, label.numel()), device=terms.device)
    terms, known, _ = _sigmoid_terms(predicted, target)
    return torch.where(known, terms, 0.0).sum(), known.sum().clamp(min=1)


def _weighted_cross_entropy(predicted: Tensor, target: Tensor, over_all: SumOverProcesses) -> tuple[Tensor, Tensor]:
    """With the class weights of PATTERN and CLUSTER."""
    if predicted.shape[1] != target.shape[1]:
        terms, label = _softmax_terms(predicted, target)
        weight = _class_weights(label, predicted.shape[1], over_all).to(terms.dtype)[label]
        # A batch of one class has no weight at all: its loss is 0, where the released code divides 0 by 0.
        return (terms * weight).sum(), weight.sum().clamp(min=torch.finfo(terms.dtype).tiny)
    terms, known, label = _sigmoid_terms(predicted, target)
    weight = _class_weights(label[known].long(), 2, over_all).to(predicted.dtype)
    return torch.where(known, terms * weight[label.long()], 0.0).sum(), known.sum().clamp(min=1)


def _softmax_terms(predicted: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Cross-entropy of each row whose class is known, and its class."""
    label = target[:, 0]
    if label.is_floating_point():
        known = ~torch.isnan(label)
        predicted, label = predicted[known], label[known].long()
    return F.cross_entropy(predicted, label, reduction="none"), label


def _sigmoid_terms(predicted: Tensor, target: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Cross-entropy of each label, which labels are known, and the labels with 0 where they are not; (R, T) each."""
    known = ~torch.isnan(target) if target.is_floating_point() else torch.ones_like(target, dtype=torch.bool)
    label = torch.where(known, target, 0).to(predicted.dtype)
    return F.binary_cross_entropy_with_logits(predicted, label, reduction="none"), known, label


def _class_weights(label: Tensor, num_classes: int, over_all: SumOverProcesses) -> Tensor:
    """w_c = (V - n_c) / V for classes that occur in the batch, 0 for others: (num_classes,)."""
    count = over_all(torch.bincount(label.flatten(), minlength=num_classes).double())
    return torch.where(count > 0, 1 - count / count.sum(), 0.0)


_CLASSES = ("binary", "multiclass", "multilabel")

LOSSES: dict[str, Loss] = {
    "l1": Loss(("regression",), elementwise(torch.abs), weighted_elementwise(torch.abs)),
    "mse": Loss(("regression",), elementwise(torch.square), weighted_elementwise(torch.square)),
    "cross_entropy": Loss(_CLASSES, _cross_entropy, _cross_entropy_by_weight),
    "weighted_cross_entropy": Loss(_CLASSES, _weighted_cross_entropy),
}
