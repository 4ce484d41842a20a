"""GPS (Rampášek et al. 2022) as published for ZINC: ten layers of message passing and global attention, with PyG's layers.

With the 28 atom types that GraphGPS provides for, 423,717 parameters, as published.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import GINEConv, GPSConv

from grit.batches.pair_batch import PairBatch
from grit.encodings.rwse import rwse_encoding
from grit.errors import GritError
from grit.graphs.schema import GraphSchema
from grit.models.blocks import Output
from grit.nn.attention.contract import check_heads
from grit.nn.norm import BatchNorm
from grit.nn.stem import FEATURE_ENCODERS
from grit.options import Dropout, Layers, Width

_RETURN_STEPS, _RETURN_DIM = 20, 28


class Gps(nn.Module):
    """x <- MLP(GINE(x, e) + attention(x)), ten times, then sum over nodes for graphs, and a head.

    Nodes begin as features and random-walk return probabilities side by side, [encode(x'_i) ‖ W norm(M_ii, ..., M^20_ii)].
    The probabilities are computed here from the batch's edges: any batch will do, whatever its encoding and pairs.

    Args:
        schema: Features and targets of the data; graphs or nodes.
        num_layers: Rounds.
        hidden_dim: Width.
        num_heads: Of the attention.
        attention_dropout: On its weights.
    """

    def __init__(
        self,
        schema: GraphSchema,
        num_layers: Layers = 10,
        hidden_dim: Width = 64,
        num_heads: Width = 4,
        attention_dropout: Dropout = 0.5,
    ) -> None:
        super().__init__()
        self.node = FEATURE_ENCODERS[schema.node.kind](schema.node, hidden_dim - _RETURN_DIM)
        self.edge = FEATURE_ENCODERS[schema.edge.kind](schema.edge, hidden_dim)
        self.return_norm = BatchNorm(_RETURN_STEPS)
        self.return_map = nn.Linear(_RETURN_STEPS, _RETURN_DIM)
        self.layers = nn.ModuleList(
            GPSConv(
                hidden_dim,
                GINEConv(_mlp(hidden_dim)),
                heads=num_heads,
                dropout=0.0,
                attn_kwargs={"dropout": attention_dropout},
            )
            for _ in range(num_layers)
        )
        self.output = Output(schema, hidden_dim)

    def forward(self, batch: PairBatch) -> Tensor:
        """Predict: (B, T) for graphs, (N, T) for nodes."""
        graphs = batch.graphs
        returns = self.return_map(self.return_norm(return_probabilities(batch)))  # (N, 28)
        x = torch.cat([self.node(graphs.x), returns], 1)  # (N, D)
        edge = self.edge(graphs.edge_attr)  # (E, D)
        for layer in self.layers:
            x = layer(x, graphs.edge_index, graphs.graph_of_node, edge_attr=edge)
        predicted: Tensor = self.output(x, batch)
        return predicted


def check_gps(options: Mapping[str, Any]) -> None:
    """Raise where options of `Gps` do not go together, before anything is built."""
    check_heads(options["hidden_dim"], options["num_heads"])
    if options["hidden_dim"] <= _RETURN_DIM:
        raise GritError(f"hidden_dim must be more than {_RETURN_DIM}, the width of the random-walk part")


def return_probabilities(batch: PairBatch) -> Tensor:
    """M_ii, ..., M^20_ii of every node, (N, 20)."""
    return rwse_encoding(batch.graphs, batch.pairs, _RETURN_STEPS + 1, batch.log_degree.dtype).node[:, 1:]


def _mlp(dim: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, dim))
