"""Predictions over a whole split, gathered exactly from all processes, and their metrics."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.distributed as dist
from torch import nn

from grit.batches.loader import Loader
from grit.batches.pair_batch import PairBatch
from grit.errors import GritError
from grit.graphs.chunk import Array
from grit.learning.task import Task

if TYPE_CHECKING:
    from lightning_fabric import Fabric


@dataclass(frozen=True)
class Evaluation:
    """Outputs (R, num_outputs) in the order of the split, targets (R, T), and metrics."""

    outputs: Array
    targets: Array
    metrics: dict[str, float]


@torch.no_grad()
def evaluate(model: nn.Module, task: Task, loader: Loader, fabric: "Fabric") -> Evaluation:
    """Predict every graph of ``loader`` once, shared among the processes, and measure.

    Raises:
        GritError: If a prediction is not a finite number.
    """
    model.eval()
    rank, world = fabric.global_rank, fabric.world_size
    mine = [number for number in range(len(loader.batches())) if number % world == rank]
    found: dict[int, tuple[Array, Array]] = {}
    for number, batch in zip(mine, loader.chosen(mine), strict=True):
        with fabric.autocast():
            found[number] = predict_batch(model, task, batch.to(fabric.device))
    if world > 1:
        parts: list[dict[int, tuple[Array, Array]]] = [{} for _ in range(world)]
        dist.all_gather_object(parts, found)
        found = {number: result for part in parts for number, result in part.items()}
    outputs = np.concatenate([found[number][0] for number in sorted(found)])
    targets = np.concatenate([found[number][1] for number in sorted(found)])
    if not np.isfinite(outputs).all():
        lost = int((~np.isfinite(outputs)).any(1).sum())
        raise GritError(
            f"the model predicts infinite or undefined values (NaN) for {lost:,} of {len(outputs):,}, so that nothing can be "
            "measured: its training diverged. Lower train.lr, or set train.clip_norm or model.clamp if they are off."
        )
    return Evaluation(outputs, targets, task.metrics(outputs, targets))


def predict_batch(model: nn.Module, task: Task, batch: PairBatch) -> tuple[Array, Array]:
    """Outputs and targets of one batch as arrays; targets are (R, 0) where there are none."""
    outputs = task.outputs(model(batch).float()).cpu().numpy()
    targets = np.zeros((len(outputs), 0)) if batch.y is None else batch.y.cpu().numpy()
    return outputs, targets
