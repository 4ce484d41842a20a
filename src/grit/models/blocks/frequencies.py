"""Encoders of Laplacian eigenvectors (LapPE): a node is the set of its (u_m, λ_m), one for each of the lowest frequencies.

The sign of an eigenvector is arbitrary: in training, each frequency's is drawn anew for every batch.

Shape letters: N nodes of the batch, K frequencies, D channels.
"""

import torch
from torch import Tensor, nn

from grit.batches.pair_batch import PairBatch


def frequencies(batch: PairBatch, *, flip: bool) -> tuple[Tensor, Tensor]:
    """(u_m, λ_m) of every node, (N, K, 2), and which are missing, (N, K) bool: a graph has no more than it has nodes.

    Args:
        batch: With the encoding ``laplacian`` or ``laplacian-unnormalised``.
        flip: Whether to draw the signs of eigenvectors.
    """
    vectors, values = batch.node_encoding.view(batch.num_nodes, 2, -1).unbind(1)  # (N, K) each
    places = torch.arange(vectors.shape[1], device=vectors.device)
    if flip:
        vectors = vectors * (2 * torch.randint(2, places.shape, device=vectors.device) - 1)
    missing = places >= batch.graphs.nodes_per_graph[batch.graphs.graph_of_node].unsqueeze(1)
    return torch.stack([vectors, values], 2), missing


class FrequencySet(nn.Module):
    """Σ_m ReLU(W_2 ReLU(W_1 [u_m, λ_m])), a DeepSet of width 2D inside: (N, 2K) -> (N, D).

    Args:
        dim: D.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(2, 2 * dim), nn.Linear(2 * dim, dim)

    def forward(self, batch: PairBatch) -> Tensor:
        """Encode."""
        tokens, missing = frequencies(batch, flip=self.training)  # (N, K, 2), (N, K)
        tokens = torch.relu(self.second(torch.relu(self.first(tokens))))  # (N, K, D)
        return tokens.masked_fill(missing.unsqueeze(2), 0.0).sum(1)


class FrequencyTransformer(nn.Module):
    """SAN's encoder: a Transformer over the K frequencies of each node, then their sum; (N, 2K) -> (N, D).

    Layers are torch's with its defaults, as in SAN: an FFN of width 2048, dropout 0.1, a norm after each addition.

    Args:
        dim: D.
        num_layers: Of the Transformer.
        num_heads: Of its attention.
    """

    def __init__(self, dim: int, num_layers: int = 2, num_heads: int = 4) -> None:
        super().__init__()
        self.embed = nn.Linear(2, dim)
        layer = nn.TransformerEncoderLayer(dim, num_heads, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, num_layers, enable_nested_tensor=False)

    def forward(self, batch: PairBatch) -> Tensor:
        """Encode."""
        tokens, missing = frequencies(batch, flip=self.training)  # (N, K, 2), (N, K)
        encoded: Tensor = self.layers(self.embed(tokens), src_key_padding_mask=missing)  # (N, K, D)
        return encoded.masked_fill(missing.unsqueeze(2), 0.0).sum(1)
