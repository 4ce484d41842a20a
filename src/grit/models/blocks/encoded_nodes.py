"""What a node begins with: its features beside its positional or structural encoding, as GraphGPS has it.

    x_i = [encode(x'_i) ‖ encode(P_i)]

Shape letters: N nodes of the batch, K channels or frequencies, D channels of the model, C of them for the encoding.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from grit.batches.pair_batch import PairBatch
from grit.encodings import encoding_kind
from grit.errors import GritError
from grit.graphs.schema import GraphSchema
from grit.models.blocks.frequencies import FrequencySet
from grit.nn.norm import BatchNorm
from grit.nn.stem import FEATURE_ENCODERS

_WALKS = ("rrwp", "rwse")  # their channel 0 is the identity: 1 at every node
_EIGENVECTORS = ("laplacian", "laplacian-unnormalised")


class EncodedNodes(nn.Module):
    """Features and encoding of every node side by side: (N, D).

    Eigenvectors of a Laplacian go through an encoder of `grit.models.blocks.frequencies`, all other encodings through a
    `LinearEncoding`. Where the encoding has no channels for nodes, the features get all D channels.

    Args:
        schema: Features of the data.
        encoding: Of the batches, entry of `ENCODINGS`.
        walk_steps: Its size.
        hidden_dim: D.
        encoding_dim: C, for the encoding.
        frequencies: C -> the encoder of eigenvectors, which maps a batch to (N, C).
    """

    def __init__(
        self,
        schema: GraphSchema,
        *,
        encoding: str,
        walk_steps: int,
        hidden_dim: int,
        encoding_dim: int,
        frequencies: Callable[[int], nn.Module] = FrequencySet,
    ) -> None:
        super().__init__()
        self.encoding_width = encoding_kind(encoding).node_dim(walk_steps)
        dropped = int(encoding in _WALKS)
        self.encoding: nn.Module | None = None
        if self.encoding_width > dropped:
            if encoding_dim >= hidden_dim:
                raise GritError(
                    f"hidden_dim must be more than encoding_dim, {encoding_dim}, which is the encoding {encoding}'s share of it; "
                    f"got {hidden_dim}. Lower model.encoding_dim."
                )
            self.encoding = (
                frequencies(encoding_dim)
                if encoding in _EIGENVECTORS
                else LinearEncoding(self.encoding_width, encoding_dim, dropped=dropped)
            )
        feature_dim = hidden_dim if self.encoding is None else hidden_dim - encoding_dim
        self.features = FEATURE_ENCODERS[schema.node.kind](schema.node, feature_dim)

    def forward(self, batch: PairBatch) -> Tensor:
        """Encode a batch."""
        if batch.node_encoding.shape[1] != self.encoding_width:
            raise GritError(
                f"the batch carries a node encoding of width {batch.node_encoding.shape[1]}, the model was built for "
                f"{self.encoding_width}. Build the batch with the model's encoding and walk_steps."
            )
        x: Tensor = self.features(batch.graphs.x)
        return x if self.encoding is None else torch.cat([x, self.encoding(batch)], 1)


class LinearEncoding(nn.Module):
    """W norm(P_i), with batch normalisation: (N, K) -> (N, C).

    Args:
        width: K.
        encoding_dim: C.
        dropped: Channels at the beginning that are left out.
    """

    def __init__(self, width: int, encoding_dim: int, *, dropped: int = 0) -> None:
        super().__init__()
        self.dropped = dropped
        self.norm = BatchNorm(width - dropped)
        self.linear = nn.Linear(width - dropped, encoding_dim)

    def forward(self, batch: PairBatch) -> Tensor:
        """Encode."""
        encoded: Tensor = self.linear(self.norm(batch.node_encoding[:, self.dropped :]))
        return encoded
