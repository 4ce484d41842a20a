"""``train_mask``, ``val_mask`` and ``test_mask`` of PyG graphs: which nodes count in which split."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from grit.errors import GritError
from grit.graphs.chunk import NODE_SPLITS, Array
from grit.graphs.schema import TaskSpec

MASKS = tuple(f"{split}_mask" for split in NODE_SPLITS)


def node_splits(graphs: Sequence[Any], column: int | None, *, first: int = 0) -> Array | None:
    """The split of each node of all graphs end to end, (N,), see `NODE_SPLITS`; None if the graphs carry no masks.

    Args:
        graphs: The graphs.
        column: Which column of masks of shape (n, C) to take.
        first: Number of the first graph, for messages.
    """
    parts = [_of_one(first + number, data, column) for number, data in enumerate(graphs)]
    present = [part for part in parts if part is not None]
    if not present:
        return None
    if len(present) < len(parts):
        missing = first + next(number for number, part in enumerate(parts) if part is None)
        raise GritError(
            f"graph {missing} carries no {', '.join(MASKS)} and other graphs do; either all graphs carry them, or none."
        )
    return np.concatenate(present)


def describe_division(node_split: Array, graphs: int, task: TaskSpec) -> str:
    """One sentence about the nodes of each split."""
    counts = np.bincount(node_split, minlength=len(NODE_SPLITS) + 1).tolist()
    each = ", ".join(f"{count:,} in {name}" for count, name in zip(counts[1:], NODE_SPLITS, strict=True))
    what = (
        f"{task.kind} of {len(task.classes)} classes" if task.classes else f"{task.kind} of {', '.join(task.targets)}"
    )
    where = "one graph" if graphs == 1 else f"{graphs:,} graphs"
    return f"{node_split.size:,} nodes of {where}: {each}, {counts[0]:,} in none; {what}."


def _of_one(graph: int, data: Any, column: int | None) -> Array | None:
    there = [name for name in MASKS if name in data]
    if not there:
        return None
    if len(there) < len(MASKS):
        missing = ", ".join(name for name in MASKS if name not in there)
        raise GritError(
            f"graph {graph} carries {', '.join(there)} but no {missing}. Set all three (torch_geometric.transforms."
            "RandomNodeSplit makes them), or delete them and pass splits."
        )
    nodes = int(data.num_nodes)
    split = np.zeros(nodes, dtype=np.uint8)
    for number, name in enumerate(MASKS, start=1):
        mask = _mask(f"graph {graph}: {name}", data[name], nodes, column)
        twice = np.flatnonzero(mask & (split > 0))
        if twice.size:
            other = MASKS[int(split[twice[0]]) - 1]
            raise GritError(
                f"graph {graph}: node {int(twice[0])} is in {other} and in {name} ({twice.size:,} such nodes); "
                "a node belongs to one split at most."
            )
        split[mask] = number
    if column is not None and all(data[name].dim() == 1 for name in MASKS):
        raise GritError(f"graph {graph}: mask_column={column}, but its masks have a single column. Leave it out.")
    return split


def _mask(where: str, mask: object, nodes: int, column: int | None) -> Array:
    if not isinstance(mask, Tensor):
        raise GritError(f"{where} must be a tensor of True and False, got {type(mask).__name__}.")
    if mask.dim() not in (1, 2) or mask.shape[0] != nodes:
        raise GritError(
            f"{where} has shape {tuple(mask.shape)} and the graph {nodes:,} nodes; expected one True or False for each node."
        )
    if mask.dim() == 2:
        divisions = mask.shape[1]
        if column is None and divisions != 1:
            raise GritError(
                f"{where} has shape {tuple(mask.shape)}, which is {divisions} divisions of the nodes. Choose one: "
                f"from_pyg(..., mask_column=0) to mask_column={divisions - 1}."
            )
        if column is not None and not 0 <= column < divisions:
            raise GritError(f"{where} has the columns 0 to {divisions - 1}, got mask_column={column}.")
        mask = mask[:, column or 0]
    if mask.dtype != torch.bool:
        if not bool(((mask == 0) | (mask == 1)).all()):
            raise GritError(f"{where} must hold True and False, or 1 and 0; node numbers are no mask.")
        mask = mask == 1
    values: Array = mask.cpu().numpy()
    return values
