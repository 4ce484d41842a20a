"""GatedGCN (Bresson & Laurent 2017), as published for ZINC with edge features (Dwivedi et al. 2023), and with an encoding."""

from typing import Annotated

from torch import Tensor, nn

from grit.batches.pair_batch import PairBatch
from grit.graphs.schema import GraphSchema
from grit.models.blocks import EncodedNodes, GatedGcnLayer, Output
from grit.nn.heads import HEADS
from grit.nn.stem import FEATURE_ENCODERS
from grit.options import Dropout, Layers, Width, entry_of


class GatedGcn(nn.Module):
    """Sixteen layers of gated messages (`grit.models.blocks.gated_gcn.GatedGcnLayer`), mean over nodes, and a head.

    Nodes begin as their features, and with the encoding of the batch beside them if it has one for nodes: GatedGCN+RWSE is this
    model with the encoding ``rwse``. Messages go along the listed edges.

    Args:
        schema: Features and targets of the data; graphs or nodes.
        encoding: Of the batches, entry of `ENCODINGS`.
        walk_steps: Its size.
        num_layers: Rounds of messages.
        hidden_dim: Width.
        encoding_dim: Of which the encoding has so much.
        dropout: On what each round adds.
        pooling: ``sum`` or ``mean`` for graphs, ``none`` for nodes.
        head: Entry of `HEADS`.
        head_layers: Linear maps in the head.
    """

    def __init__(
        self,
        schema: GraphSchema,
        encoding: str = "none",
        walk_steps: int = 1,
        num_layers: Layers = 16,
        hidden_dim: Width = 78,
        encoding_dim: Width = 20,
        dropout: Dropout = 0.0,
        pooling: str = "mean",
        head: Annotated[str, entry_of(HEADS)] = "halving",
        head_layers: Layers = 3,
    ) -> None:
        super().__init__()
        self.node = EncodedNodes(
            schema, encoding=encoding, walk_steps=walk_steps, hidden_dim=hidden_dim, encoding_dim=encoding_dim
        )
        self.edge = FEATURE_ENCODERS[schema.edge.kind](schema.edge, hidden_dim)
        self.layers = nn.ModuleList(GatedGcnLayer(hidden_dim, dropout=dropout) for _ in range(num_layers))
        self.output = Output(schema, hidden_dim, pooling=pooling, num_layers=head_layers, head=head)

    def forward(self, batch: PairBatch) -> Tensor:
        """Predict: (B, T) for graphs, (N, T) for nodes."""
        x, edge = self.node(batch), self.edge(batch.graphs.edge_attr)
        for number, layer in enumerate(self.layers, start=1):
            # What the last layer would write to the edges is read by nobody.
            x, edge = layer(x, edge, batch.graphs.edge_index, update_edges=number < len(self.layers))
        predicted: Tensor = self.output(x, batch)
        return predicted
