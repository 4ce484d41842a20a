"""From node vectors to predictions."""

from typing import Literal

from torch import Tensor, nn

from grit.batches.pair_batch import PairBatch
from grit.graphs.schema import GraphSchema
from grit.nn.graph_features import JoinFeatures
from grit.nn.heads import HEADS, readout_class

Pooling = Literal["sum", "mean", "none"]  # none for nodes


class Output(nn.Module):
    """Pool the nodes of each graph, or keep every node for itself, and predict: D -> D/2 -> D/4 -> T, ReLU between.

    ``head`` and ``num_layers`` give other forms.

    Args:
        schema: Of the data: what is predicted, and for what.
        hidden_dim: D.
        pooling: ``sum`` or ``mean``, for graphs.
        num_layers: Linear maps.
        head: Entry of `HEADS`, if it is not to halve the width with every map.
        activation: Between the maps.
    """

    def __init__(
        self,
        schema: GraphSchema,
        hidden_dim: int,
        *,
        pooling: str = "sum",
        num_layers: int = 3,
        head: str = "halving",
        activation: str = "relu",
    ) -> None:
        super().__init__()
        self.readout = readout_class(schema.level, pooling if schema.level == "graph" else "none")(hidden_dim)
        self.joined = JoinFeatures(schema, hidden_dim)
        self.head = HEADS[head](
            hidden_dim=hidden_dim, num_outputs=schema.num_outputs, num_layers=num_layers, activation=activation
        )

    def forward(self, x: Tensor, batch: PairBatch) -> Tensor:
        """(N, D) -> (B, T) or (N, T)."""
        predicted: Tensor = self.head(self.joined(self.readout(x, x, batch), batch))
        return predicted
