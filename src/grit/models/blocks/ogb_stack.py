"""The stack of layers of the Open Graph Benchmark (Hu et al. 2021), which may have a virtual node (Gilmer et al. 2017).

Shape letters: N nodes of the batch, E edges, B graphs, D channels, T targets.
"""

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from grit.batches.pair_batch import PairBatch
from grit.graphs.schema import GraphSchema
from grit.models.blocks.few_rows import normed_mlp
from grit.models.blocks.output import Output, Pooling
from grit.nn.heads import sum_per_graph
from grit.nn.norm import BatchNorm
from grit.nn.stem import FEATURE_ENCODERS
from grit.options import Dropout, Layers, Width


class OgbStack(nn.Module):
    """x <- dropout(ReLU(BatchNorm(conv(x, e)))), without ReLU in the last layer; then a sum over nodes and one linear map.

    With a virtual node, each layer but the last passes a vector v per graph on, beginning with one that is learned:

        x_i <- x_i + v          v <- dropout(MLP(v + Σ_i x_i))

    so that from the second layer on every node hears from all others of its graph, whether edges connect them or not.

    Args:
        schema: Features and targets of the data; graphs or nodes.
        num_layers: Rounds of messages.
        hidden_dim: D.
        dropout: On the result of each round.
        pooling: ``sum`` or ``mean`` for graphs, ``none`` for nodes.

    Attributes:
        conv: Schema and D -> a module of x (N, D), edge_index (2, E) and edge features as they are.
        has_virtual_node: Whether there is one.
    """

    conv: ClassVar[type[nn.Module]]
    has_virtual_node: ClassVar[bool]

    def __init__(
        self,
        schema: GraphSchema,
        num_layers: Layers = 5,
        hidden_dim: Width = 300,
        dropout: Dropout = 0.0,
        pooling: Pooling = "sum",
    ) -> None:
        super().__init__()
        self.node = FEATURE_ENCODERS[schema.node.kind](schema.node, hidden_dim)
        self.convs = nn.ModuleList(self.conv(schema, hidden_dim) for _ in range(num_layers))
        self.norms = nn.ModuleList(BatchNorm(hidden_dim) for _ in range(num_layers))
        self.dropout = dropout
        self.output = Output(schema, hidden_dim, pooling=pooling, num_layers=1)
        self.virtual = nn.Parameter(torch.zeros(1, hidden_dim)) if self.has_virtual_node else None
        passed_on = num_layers - 1 if self.has_virtual_node else 0
        widths = [hidden_dim] * 3
        self.virtual_mlps = nn.ModuleList(normed_mlp(*widths, final=True) for _ in range(passed_on))

    def forward(self, batch: PairBatch) -> Tensor:
        """Predict: (B, T) for graphs, (N, T) for nodes."""
        graphs = batch.graphs
        x = self.node(graphs.x)  # (N, D)
        virtual = None if self.virtual is None else self.virtual.expand(batch.num_graphs, -1)  # (B, D)
        last = len(self.convs) - 1
        for layer, (conv, norm) in enumerate(zip(self.convs, self.norms, strict=True)):
            if virtual is not None:
                x = x + virtual[graphs.graph_of_node]
                if layer < last:
                    heard = self.virtual_mlps[layer](virtual + sum_per_graph(x, batch))
                    virtual = F.dropout(heard, self.dropout, self.training)
            x = norm(conv(x, graphs.edge_index, graphs.edge_attr))
            x = F.dropout(torch.relu(x) if layer < last else x, self.dropout, self.training)
        predicted: Tensor = self.output(x, batch)
        return predicted
