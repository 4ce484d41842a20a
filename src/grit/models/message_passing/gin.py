"""GIN (Xu et al. 2019) as Dwivedi et al. 2020 build it for ZINC: sums over neighbours, and a prediction from every layer.

Messages follow the direction of the edges. Self-loops count as edges, parallel edges count each.

Shape letters: N nodes of the batch, B graphs, D channels, T targets.
"""

from torch import Tensor, nn

from grit.batches.pair_batch import PairBatch
from grit.graphs.schema import GraphSchema
from grit.models.blocks import Output, Pooling, ResidualLayer
from grit.nn.norm import BatchNorm
from grit.nn.stem import FEATURE_ENCODERS
from grit.options import Dropout, Layers, Width


class Gin(nn.Module):
    """x_i <- x_i + ReLU(BatchNorm(MLP((1 + ε) x_i + Σ_{j -> i} x_j))), MLP = Linear, BatchNorm, ReLU, Linear.

    The prediction is a sum over the embedding and all layers, Σ_l (W_l Σ_i x_i^l + b_l). Edge features are not read.

    Args:
        schema: Features and targets of the data; graphs or nodes.
        num_layers: Rounds of messages.
        hidden_dim: Width.
        dropout: On the result of each round.
        pooling: ``sum`` or ``mean`` for graphs, ``none`` for nodes.
    """

    def __init__(
        self,
        schema: GraphSchema,
        num_layers: Layers = 16,
        hidden_dim: Width = 124,
        dropout: Dropout = 0.0,
        pooling: Pooling = "sum",
    ) -> None:
        from torch_geometric.nn import GINConv

        super().__init__()
        self.node = FEATURE_ENCODERS[schema.node.kind](schema.node, hidden_dim)
        self.layers = nn.ModuleList(
            ResidualLayer(GINConv(isomorphism_mlp(hidden_dim), train_eps=True), hidden_dim, dropout=dropout)
            for _ in range(num_layers)
        )
        self.outputs = nn.ModuleList(
            Output(schema, hidden_dim, pooling=pooling, num_layers=1) for _ in range(num_layers + 1)
        )

    def forward(self, batch: PairBatch) -> Tensor:
        """Predict: (B, T) for graphs, (N, T) for nodes."""
        x = self.node(batch.graphs.x)  # (N, D)
        predicted: Tensor = self.outputs[0](x, batch)
        for layer, output in zip(self.layers, self.outputs[1:], strict=True):
            x = layer(x, batch.graphs.edge_index, batch.graphs.edge_attr)
            predicted = predicted + output(x, batch)
        return predicted


def isomorphism_mlp(dim: int) -> nn.Sequential:
    """Linear, BatchNorm, ReLU, Linear: the MLP of GIN."""
    return nn.Sequential(nn.Linear(dim, dim), BatchNorm(dim), nn.ReLU(), nn.Linear(dim, dim))
