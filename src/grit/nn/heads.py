"""From the last layer to predictions: a readout picks what is predicted for, a head maps it to the targets.

Shape letters: N nodes, P node pairs, B graphs, Q labelled pairs, R = B, N or Q rows, D channels, T targets.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from grit.batches.pair_batch import PairBatch
from grit.errors import GritError
from grit.nn.activation import activation_function


def sum_per_graph(x: Tensor, batch: PairBatch) -> Tensor:
    """Sum over the nodes of each graph: (N, D) -> (B, D)."""
    return x.new_zeros(batch.num_graphs, x.shape[1]).index_add(0, batch.graphs.graph_of_node, x)


class Readout(nn.Module, ABC):
    """Nodes and pairs -> one row per graph, node or labelled pair; all take ``hidden_dim``."""

    reads_pairs: ClassVar[bool] = False

    def __init__(self, hidden_dim: int) -> None:
        super().__init__()

    @abstractmethod
    def forward(self, x: Tensor, pair: Tensor, batch: PairBatch) -> Tensor:
        """Pick: x (N, D), pair (P, D) -> (R, D)."""


class SumReadout(Readout):
    """A graph is the sum of its nodes: (B, D)."""

    def forward(self, x: Tensor, pair: Tensor, batch: PairBatch) -> Tensor:
        """Pool."""
        return sum_per_graph(x, batch)


class MeanReadout(Readout):
    """A graph is the mean of its nodes: (B, D)."""

    def forward(self, x: Tensor, pair: Tensor, batch: PairBatch) -> Tensor:
        """Pool."""
        return sum_per_graph(x, batch) / batch.graphs.nodes_per_graph.unsqueeze(1).to(x.dtype)


class NodeReadout(Readout):
    """Every node for itself: (N, D)."""

    def forward(self, x: Tensor, pair: Tensor, batch: PairBatch) -> Tensor:
        """Pass on."""
        return x


class EdgeReadout(Readout):
    """Every labelled pair, source j and target i: ReLU(W [x_j ‖ x_i ‖ e_ij]), (Q, D).

    The labelled pairs are ``batch.graphs.label_index``; they must be among the pairs that attention ran over.
    """

    reads_pairs: ClassVar[bool] = True

    def __init__(self, hidden_dim: int) -> None:
        super().__init__(hidden_dim)
        self.linear = nn.Linear(3 * hidden_dim, hidden_dim)

    def forward(self, x: Tensor, pair: Tensor, batch: PairBatch) -> Tensor:
        """Gather."""
        if batch.graphs.label_index is None:
            raise GritError("an edge-level model needs the pairs to predict for: data.edge_label_index, shape (2, Q).")
        source, target = batch.graphs.label_index
        at = batch.pairs.find(query=target, key=source)
        if bool((at < 0).any()):
            raise GritError(
                "edge_label_index names pairs that sparse attention leaves out. Build the batch with pairs='all'."
            )
        return torch.relu(self.linear(torch.cat([x[source], x[target], pair[at]], 1)))


READOUTS: dict[str, dict[str, type[Readout]]] = {
    "graph": {"sum": SumReadout, "mean": MeanReadout},
    "node": {"none": NodeReadout},
    "edge": {"none": EdgeReadout},
}


def readout_class(level: str, pooling: str) -> type[Readout]:
    """The readout for predictions at ``level``; an error if the pooling does not go with it."""
    options = READOUTS[level]
    if pooling not in options:
        raise GritError(f"{level}-level predictions go with pooling {' or '.join(options)}, got {pooling!r}.")
    return options[pooling]


class HalvingHead(nn.Module):
    """D -> D/2 -> D/4 ... -> T with an activation between, the released head of ZINC and PCQM4Mv2.

    Args:
        hidden_dim: D.
        num_outputs: T.
        num_layers: Linear maps in all.
        activation: ``relu`` or ``gelu``.
    """

    def __init__(self, *, hidden_dim: int, num_outputs: int, num_layers: int, activation: str) -> None:
        super().__init__()
        widths = [hidden_dim // 2**layer for layer in range(num_layers)]
        if widths[-1] < 1:
            raise GritError(f"hidden_dim {hidden_dim} cannot be halved {num_layers - 1} times; use fewer head_layers.")
        self.linears = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, [*widths[1:], num_outputs], strict=True))
        self.activation = activation_function(activation)

    def forward(self, rows: Tensor) -> Tensor:
        """Predict: (R, D) -> (R, T)."""
        for linear in self.linears[:-1]:
            rows = self.activation(linear(rows))
        predicted: Tensor = self.linears[-1](rows)
        return predicted


class MLPHead(nn.Module):
    """D -> D ... -> T; after each hidden map the activation, then each row scaled to length 1.

    The row-wise L2 normalisation is what the released MNIST, CIFAR10, PATTERN, CLUSTER and Peptides heads compute.

    Args:
        hidden_dim: D.
        num_outputs: T.
        num_layers: Linear maps in all.
        activation: ``relu`` or ``gelu``.
    """

    def __init__(self, *, hidden_dim: int, num_outputs: int, num_layers: int, activation: str) -> None:
        super().__init__()
        self.hidden = nn.ModuleList(nn.Linear(hidden_dim, hidden_dim) for _ in range(num_layers - 1))
        self.out = nn.Linear(hidden_dim, num_outputs)
        self.activation = activation_function(activation)

    def forward(self, rows: Tensor) -> Tensor:
        """Predict: (R, D) -> (R, T)."""
        for linear in self.hidden:
            rows = F.normalize(self.activation(linear(rows)), dim=-1)
        predicted: Tensor = self.out(rows)
        return predicted


# hidden_dim, num_outputs, num_layers and activation as keywords -> a module (R, D) -> (R, T).
HEADS: dict[str, Callable[..., nn.Module]] = {"halving": HalvingHead, "mlp": MLPHead}
