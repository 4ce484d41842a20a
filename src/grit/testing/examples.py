"""Predictions and targets of every kind of task, for the rules of `LOSSES` and `METRICS`."""

from math import nan
from typing import NamedTuple

import torch
from torch import Tensor

CLASSES = 3


class Example(NamedTuple):
    """Rows of one kind of task, in float64.

    Attributes:
        predicted: (R, num_outputs), random, as a model gives it.
        perfect: (R, num_outputs), the same of a model that knows the targets.
        target: (R, T).
    """

    predicted: Tensor
    perfect: Tensor
    target: Tensor

    def take(self, rows: Tensor | slice) -> "Example":
        """Some of the rows."""
        return Example(self.predicted[rows], self.perfect[rows], self.target[rows])

    def without_targets(self, rows: slice) -> "Example":
        """The same, with the targets of these rows missing."""
        target = self.target.clone()
        target[rows] = nan
        return self._replace(target=target)


def example(kind: str, rows: int = 40, seed: int = 0) -> Example:
    """Rows of one kind of task, in which every class occurs if there are enough rows."""
    generator = torch.Generator().manual_seed(seed)

    def normal(columns: int) -> Tensor:
        return torch.randn(rows, columns, dtype=torch.float64, generator=generator)

    if kind == "regression":
        target = normal(2)
        return Example(normal(2), target.clone(), target)
    columns, classes = {"binary": (1, 2), "multiclass": (1, CLASSES), "multilabel": (2, 2)}[kind]
    in_turn = torch.arange(rows) % classes
    target = torch.stack([in_turn[torch.randperm(rows, generator=generator)] for _ in range(columns)], 1)
    if kind == "multiclass":
        sure = 20.0 * (torch.nn.functional.one_hot(target[:, 0], CLASSES).double() - 0.5)
        return Example(normal(CLASSES), sure, target.double())
    return Example(normal(columns), 20.0 * (target.double() - 0.5), target.double())


def outputs(kind: str, predicted: Tensor) -> Tensor:
    """What a task makes of a model's predictions: numbers, or probabilities."""
    if kind == "regression":
        return predicted
    return predicted.softmax(-1) if kind == "multiclass" else predicted.sigmoid()
