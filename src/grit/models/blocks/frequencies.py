"""Encoders of the Laplacian encoding (LapPE): a node is the set of its (u_m, λ_m), one for each of the lowest frequencies.

Eigenvectors have no sign of their own: in training that of every frequency is drawn anew for each batch.

Shape letters: N nodes of the batch, K frequencies, D channels.
"""

from itertools import pairwise

import torch
from torch import Tensor, nn

from grit.batches.pair_batch import PairBatch


def frequencies(batch: PairBatch, *, flip: bool) -> tuple[Tensor, Tensor]:
    """(u_m, λ_m) of every node, (N, K, 2), and which are missing, (N, K) bool: a graph has no more than it has nodes.

    Args:
        batch: With the encoding ``laplacian``.
        flip: Whether signs of eigenvectors are drawn.
    """
    vectors, values = batch.node_encoding.view(batch.num_nodes, 2, -1).unbind(1)  # (N, K) each
    places = torch.arange(vectors.shape[1], device=vectors.device)
    if flip:
        vectors = vectors * (1.0 - 2.0 * (torch.rand(places.shape, device=vectors.device) < 0.5).to(vectors.dtype))
    missing = places >= batch.graphs.nodes_per_graph[batch.graphs.graph_of_node].unsqueeze(1)
    return torch.stack([vectors, values], 2), missing


class FrequencySet(nn.Module):
    """Σ_m φ(u_m, λ_m) with an MLP φ: 2 -> 2D -> ... -> D, a ReLU after every map (DeepSet); (N, 2K) -> (N, D).

    Args:
        dim: D.
        num_layers: Linear maps, two or more.
    """

    def __init__(self, dim: int, num_layers: int = 2) -> None:
        super().__init__()
        widths = [2, *[2 * dim] * (num_layers - 1), dim]
        self.linears = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))

    def forward(self, batch: PairBatch) -> Tensor:
        """Encode."""
        tokens, missing = frequencies(batch, flip=self.training)  # (N, K, 2), (N, K)
        for linear in self.linears:
            tokens = torch.relu(linear(tokens))
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
