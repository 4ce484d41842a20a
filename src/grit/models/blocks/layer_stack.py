"""The common form of message passing: embed the nodes, pass messages L times, pool, predict (Dwivedi et al. 2020).

Shape letters: N nodes of the batch, E edges, B graphs, D channels, T targets.
"""

from collections.abc import Callable, Iterable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from grit.batches.pair_batch import PairBatch
from grit.graphs.schema import GraphSchema
from grit.models.blocks.output import Output
from grit.nn.norm import BatchNorm
from grit.nn.stem import FEATURE_ENCODERS


class ResidualLayer(nn.Module):
    """x <- dropout(x + act(BatchNorm(conv(x)))), with any convolution inside.

    Args:
        conv: Called with x (N, D), edge_index (2, E) and nothing else; returns (N, D).
        hidden_dim: D.
        dropout: On the result.
        activation: act.
    """

    def __init__(
        self,
        conv: nn.Module,
        hidden_dim: int,
        *,
        dropout: float = 0.0,
        activation: Callable[[Tensor], Tensor] = torch.relu,
    ) -> None:
        super().__init__()
        self.conv = conv
        self.norm = BatchNorm(hidden_dim)
        self.dropout = dropout
        self.activation = activation

    def forward(self, x: Tensor, edge_index: Tensor, edge: Tensor) -> Tensor:
        """One round: (N, D) -> (N, D)."""
        x = x + self.activation(self.norm(self.conv(x, edge_index)))
        return F.dropout(x, self.dropout, self.training)


class LayerStack(nn.Module):
    """Base of models that embed the node features, apply layers one after another, pool and predict.

    Args:
        schema: Features and targets of the data; graphs or nodes.
        hidden_dim: D, the width of the embedded nodes.
        layers: Each maps x (N, D), edge_index (2, E) and what `edges` returns to a new x.
        pooling: ``sum`` or ``mean`` for graphs; nodes are not pooled.
        head_layers: Linear maps of the head, each half as wide as the one before.
        output_dim: Width after the last layer; D if not given.
    """

    def __init__(
        self,
        schema: GraphSchema,
        hidden_dim: int,
        layers: Iterable[nn.Module],
        *,
        pooling: str,
        head_layers: int = 3,
        output_dim: int | None = None,
    ) -> None:
        super().__init__()
        self.node = FEATURE_ENCODERS[schema.node.kind](schema.node, hidden_dim)
        self.layers = nn.ModuleList(layers)
        self.output = Output(schema, output_dim or hidden_dim, pooling=pooling, num_layers=head_layers)

    def edges(self, batch: PairBatch) -> Tensor:
        """What the layers read of each edge, (E, any): its features as they are, unless a model needs something else."""
        return batch.graphs.edge_attr

    def forward(self, batch: PairBatch) -> Tensor:
        """Predict: (B, T) for graphs, (N, T) for nodes."""
        x, edge = self.node(batch.graphs.x), self.edges(batch)  # (N, D)
        for layer in self.layers:
            x = layer(x, batch.graphs.edge_index, edge)
        predicted: Tensor = self.output(x, batch)
        return predicted
