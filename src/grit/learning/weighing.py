"""How much each target of each row counts in the loss: by the weight of its row, and by its class.

Shape letters: R rows, T targets, C classes.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from grit.errors import GritError
from grit.graphs.chunk import Array
from grit.graphs.schema import TargetPart, TaskSpec

_LISTED = 4  # targets whose weights a sentence names


@dataclass(frozen=True)
class Weighing:
    """Weights of targets, 1 on average over the training set.

    Attributes:
        mean: Mean weight of the training rows; None where rows count alike.
        classes: For each target the weight of each of its classes, (T, C); None where classes count alike.
    """

    mean: float | None = None
    classes: Tensor | None = None

    def weights(self, target: Tensor, row_weight: Tensor | None) -> Tensor:
        """(R, T) from target (R, T), with NaN where missing, and the weights of the rows (R,)."""
        dtype = target.dtype if target.is_floating_point() else torch.float32
        found = torch.ones(target.shape, dtype=dtype, device=target.device)
        if self.mean is not None:
            if row_weight is None:
                raise GritError("the task was fitted with weights of rows, and the batch has none (graph_weight).")
            found = found * (row_weight.to(found) / self.mean).unsqueeze(1)
        if self.classes is not None:
            known = ~torch.isnan(target) if target.is_floating_point() else torch.ones_like(target, dtype=torch.bool)
            label = torch.where(known, target, 0).long()  # (R, T)
            by_class = self.classes.to(found)  # (T, C)
            found = found * by_class[torch.arange(len(by_class), device=label.device), label]
        return found

    def of_target(self, part: TargetPart) -> "Weighing | None":
        """That of one target of several kinds; a regression has no classes."""
        classes = (
            None
            if self.classes is None or not part.spec.classes
            else self.classes[part.column, : len(part.spec.classes)]
        )
        if self.mean is None and classes is None:
            return None
        return Weighing(self.mean, None if classes is None else classes[None])

    def describe(self, spec: TaskSpec) -> str | None:
        """One sentence about the weights of classes, for the user; None where classes count alike."""
        if self.classes is None:
            return None
        parts = [part for part in spec.by_target() if part.spec.classes]
        shown = []
        for part in parts[:_LISTED]:
            of_class = zip(part.spec.classes, self.classes[part.column].tolist(), strict=False)
            shown.append(f"{part.spec.targets[0]} {', '.join(f'{name} x {weight:.3g}' for name, weight in of_class)}")
        more = f" and {len(parts) - _LISTED} more targets" if len(parts) > _LISTED else ""
        return f"classes count in the loss by their rarity in the training set: {'; '.join(shown)}{more}"


def fit_weighing(spec: TaskSpec, targets: Array, weights: Array | None, *, balance: bool) -> Weighing | None:
    """How targets count, from the training set: targets (R, T), weights of its rows (R,); None where all count alike.

    With ``balance`` class c of a target weighs n / (C n_c), where n_c of n known labels are of the class and C classes occur,
    so that all classes have the same total. Rows count in n_c by their weights.
    """
    if weights is None and not balance:
        return None
    if balance and spec.kind == "regression":
        raise GritError(
            "--balance (train.balance) is for classes, and this is a regression. Leave it out, or use --weights."
        )
    mean = None if weights is None else float(weights.astype(np.float64).mean())
    if mean == 0:
        raise GritError("the weights of all training rows are 0: there would be nothing to learn from.")
    return Weighing(mean, _class_weights(spec, targets, weights) if balance else None)


def _class_weights(spec: TaskSpec, targets: Array, weights: Array | None) -> Tensor:
    parts = [part for part in spec.by_target() if part.spec.classes]
    num_classes = max(len(part.spec.classes) for part in parts)
    found = np.ones((targets.shape[1], num_classes))
    for part in parts:
        column = part.column
        values = targets[:, column].astype(np.float64)
        known = ~np.isnan(values)
        counted = None if weights is None else weights[known].astype(np.float64)
        count = np.bincount(values[known].astype(np.int64), weights=counted, minlength=num_classes)  # (C,)
        occurs = count > 0
        found[column, occurs] = count.sum() / (occurs.sum() * count[occurs]) if occurs.any() else 1.0
    return torch.from_numpy(found)
