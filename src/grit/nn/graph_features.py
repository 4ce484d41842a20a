"""Numbers that each graph carries beside its nodes and edges, joined to the vector of the graph before the head.

Every model of the package has a `JoinFeatures` there. Without such numbers it passes the vectors on and has no weights.

Shape letters: B graphs, R = B, N or Q rows, D channels, F numbers per graph.
"""

import numpy as np
import torch
from torch import Tensor, nn

from grit.batches.pair_batch import PairBatch
from grit.errors import GritError
from grit.graphs.chunk import Array
from grit.graphs.schema import GraphSchema
from grit.graphs.store import GraphStore

LARGEST = 10.0
"""Standard deviations from the mean to which a number is cut: one outlier would otherwise be all that the head sees."""
_AT_A_TIME = 4_096


class JoinFeatures(nn.Module):
    """Join the numbers f of each graph to its vector h: h + W_2 ReLU(W_1 z), z = clip((f - mean) / deviation, ±10).

    The vector passes as it is, so that weights of a model without such numbers still fit. On a few hundred graphs this also
    learned faster than a map of [h ‖ z], in which h, the sum over all nodes, is much the larger part.

    Mean and standard deviation are those of the training set (`fit_features`). They are kept with the weights. A missing
    number (NaN) counts as the mean, z = 0, and so does one that is the same in all of the training set.

    Args:
        schema: Of the data; with ``graph_features`` 0 the rows pass as they are.
        width: D.

    Shapes:
        rows (R, D) -> (R, D).
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, schema: GraphSchema, width: int) -> None:
        super().__init__()
        self.num_features = schema.graph_features
        if self.num_features:
            self.hidden = nn.Linear(self.num_features, width)
            self.out = nn.Linear(width, width)
            self.register_buffer("mean", torch.zeros(self.num_features))
            self.register_buffer("scale", torch.ones(self.num_features))

    def forward(self, rows: Tensor, batch: PairBatch) -> Tensor:
        """Join."""
        values = batch.graphs.graph_attr
        given = 0 if values is None else values.shape[1]
        if given != self.num_features:
            raise GritError(
                f"the model reads {self.num_features} numbers of each graph (graph_attr), the batch has {given}. Give the "
                "graphs those that the model was built for."
            )
        if values is None or not given:
            return rows
        joined: Tensor = rows + self.out(torch.relu(self.hidden(self.normalised(values).to(rows.dtype))))
        return joined

    def normalised(self, values: Tensor) -> Tensor:
        """What is joined: f (B, F) -> z (B, F)."""
        z = (values.to(self.mean.dtype) - self.mean) / torch.where(self.scale > 0, self.scale, 1.0)
        return torch.where((self.scale > 0) & ~torch.isnan(z), z, 0.0).clamp(-LARGEST, LARGEST)


def fit_features(model: nn.Module, store: GraphStore, split: str = "train") -> None:
    """Give a model the mean and standard deviation of the numbers of the graphs in a split."""
    joins = [module for module in model.modules() if isinstance(module, JoinFeatures) and module.num_features]
    if not joins:
        return
    mean, scale = feature_moments(store, store.split(split))
    for join in joins:
        join.mean.copy_(torch.from_numpy(mean))
        join.scale.copy_(torch.from_numpy(scale))


def feature_moments(store: GraphStore, members: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of each number over some graphs, (F,) float64, missing ones left out.

    Both are 0 where no graph has a value.
    """
    blocks = [members[start : start + _AT_A_TIME] for start in range(0, members.size, _AT_A_TIME)]
    width = store.schema.graph_features
    count, total, squares = np.zeros(width), np.zeros(width), np.zeros(width)
    for block in blocks:
        values = store.graph_attr(block).astype(np.float64)
        count += (~np.isnan(values)).sum(0)
        total += np.nansum(values, axis=0)
    mean = total / np.maximum(count, 1)
    for block in blocks:
        squares += np.nansum(np.square(store.graph_attr(block).astype(np.float64) - mean), axis=0)
    scale = np.sqrt(squares / np.maximum(count, 1))
    # Equal numbers whose mean was rounded seem to differ by that rounding.
    return mean, np.where(scale > 1e-6 * np.abs(mean), scale, 0.0)


def check_reads_features(model: nn.Module, name: str, schema: GraphSchema) -> None:
    """Raise if a model would ignore the numbers of the graphs."""
    if schema.graph_features and not any(isinstance(module, JoinFeatures) for module in model.modules()):
        raise GritError(
            f"the graphs carry {schema.graph_features} numbers of their own (graph_attr), which the model {name!r} does not "
            "read. Join them before its head with grit.nn.graph_features.JoinFeatures, choose another model, or leave them out."
        )
