"""What a node begins as, where features and encoding stand side by side."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from grit.batches.pair_batch import PairBatch
from grit.encodings import encoding_kind
from grit.errors import GritError
from grit.graphs.schema import GraphSchema
from grit.nn.norm import BatchNorm
from grit.nn.stem import FEATURE_ENCODERS

_BEGIN_WITH_ONE = ("rrwp", "rwse")  # encodings whose first channel is the same for all nodes


class NormedEncoding(nn.Module):
    """W norm(p_i) + b of the batch's node encoding p, without a channel that is constant: (N, F) -> (N, D).

    Args:
        dim: D.
        encoding: Entry of `ENCODINGS`.
        walk_steps: Its size.
    """

    def __init__(self, dim: int, encoding: str, walk_steps: int) -> None:
        super().__init__()
        self.first = int(encoding in _BEGIN_WITH_ONE)
        width = encoding_kind(encoding).node_dim(walk_steps) - self.first
        self.norm = BatchNorm(width)
        self.map = nn.Linear(width, dim)

    def forward(self, batch: PairBatch) -> Tensor:
        """Encode."""
        encoded: Tensor = self.map(self.norm(batch.node_encoding[:, self.first :]))
        return encoded


class NodeInput(nn.Module):
    """x_i = [encode(x'_i) ‖ encode(p_i)], (N, D); the features alone where the batch's encoding says nothing of nodes.

    Args:
        schema: Of the data.
        hidden_dim: D.
        encoding: Entry of `ENCODINGS`.
        walk_steps: Its size.
        encoding_dim: Channels of the encoding among the D.
        frequencies: Makes the encoder of ``laplacian``, from a batch to (N, encoding_dim). Others are normed and mapped.
    """

    def __init__(
        self,
        schema: GraphSchema,
        hidden_dim: int,
        *,
        encoding: str,
        walk_steps: int,
        encoding_dim: int,
        frequencies: Callable[[], nn.Module],
    ) -> None:
        super().__init__()
        self.encoding_width = encoding_kind(encoding).node_dim(walk_steps)
        told = self.encoding_width - (encoding in _BEGIN_WITH_ONE)
        self.features = FEATURE_ENCODERS[schema.node.kind](schema.node, hidden_dim - (encoding_dim if told else 0))
        self.encoding: nn.Module | None = None
        if told:
            laplacian = encoding == "laplacian"
            self.encoding = frequencies() if laplacian else NormedEncoding(encoding_dim, encoding, walk_steps)

    def forward(self, batch: PairBatch) -> Tensor:
        """Encode."""
        if batch.node_encoding.shape[1] != self.encoding_width:
            raise GritError(
                f"the batch carries a node encoding of width {batch.node_encoding.shape[1]}, the model was built for "
                f"{self.encoding_width}. Build the batch with the model's encoding and walk_steps."
            )
        features: Tensor = self.features(batch.graphs.x)
        return features if self.encoding is None else torch.cat([features, self.encoding(batch)], 1)


def check_encoding_dim(hidden_dim: int, encoding_dim: int) -> None:
    """Raise if features would have no channel left."""
    if hidden_dim <= encoding_dim:
        raise GritError(f"hidden_dim must be more than encoding_dim, got {hidden_dim} and {encoding_dim}")
