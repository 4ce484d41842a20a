"""The layer of TokenGT, and its random identifiers.

Shape letters: N nodes, B graphs, L the most tokens that one graph has, H heads, C channels per head, D = H*C, d width of an
identifier.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.utils import to_dense_batch

from grit.graphs.packed import PackedGraphs
from grit.nn.attention.contract import check_heads


class TokenGtLayer(nn.Module):
    """One layer of a transformer, norms first: tokens (B, L, D), and which of them there are (B, L) -> (B, L, D)."""

    def __init__(
        self,
        *,
        hidden_dim: int,
        ffn_dim: int,
        num_heads: int,
        dropout: float,
        attention_dropout: float,
        activation_dropout: float,
        skip: float,
    ) -> None:
        super().__init__()
        check_heads(hidden_dim, num_heads)
        self.num_heads, self.attention_dropout, self.skip = num_heads, attention_dropout, skip
        self.norm = nn.LayerNorm(hidden_dim)
        self.query, self.key, self.value = (nn.Linear(hidden_dim, hidden_dim) for _ in range(3))
        self.out = nn.Sequential(nn.Linear(hidden_dim, hidden_dim), nn.Dropout(dropout))
        self.ffn = nn.Sequential(
            nn.LayerNorm(hidden_dim),
            nn.Linear(hidden_dim, ffn_dim),
            nn.GELU(),
            nn.Dropout(activation_dropout),
            nn.Linear(ffn_dim, hidden_dim),
            nn.Dropout(dropout),
        )

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Attend within each graph."""
        normed = self.norm(x)
        query, key, value = (
            linear(normed).unflatten(2, (self.num_heads, -1)).transpose(1, 2)
            for linear in (self.query, self.key, self.value)
        )  # (B, H, L, C)
        dropout = self.attention_dropout if self.training else 0.0
        heard = F.scaled_dot_product_attention(query, key, value, attn_mask=mask[:, None, None], dropout_p=dropout)
        x = x + self._kept(self.out(heard.transpose(1, 2).flatten(2)))
        return x + self._kept(self.ffn(x))

    def _kept(self, change: Tensor) -> Tensor:
        """Stochastic depth: in training some graphs stay as they are, and the others change by as much more."""
        if not self.training or self.skip == 0.0:
            return change
        return change * F.dropout(change.new_ones(change.shape[0], 1, 1), self.skip)


def orthonormal(drawn: Tensor, graphs: PackedGraphs) -> Tensor:
    """Rows of orthogonal matrices, uniformly distributed if ``drawn`` is normal: (N, d) -> (N, d).

    A graph of n nodes gets n rows of an orthogonal n x n matrix and zeros behind them. If n is more than d, these are d of its
    columns, with rows of length 1.
    """
    dense, mask = to_dense_batch(drawn, graphs.graph_of_node)  # (B, n, d)
    width = min(dense.shape[1], dense.shape[2])
    # Rows and columns beyond a graph's size are zero and stay zero in the columns before them: no graph sees another's size.
    used = torch.arange(width, device=drawn.device) < graphs.nodes_per_graph.unsqueeze(1)  # (B, width)
    q, r = torch.linalg.qr(dense[:, :, :width] * used.unsqueeze(1))  # (B, n, width)
    # Only with positive numbers on the diagonal of r is q uniform; the decomposition is free to choose their signs.
    sign = torch.where(r.diagonal(dim1=1, dim2=2) < 0, -1.0, 1.0).to(q.dtype) * used
    rows = (q * sign.unsqueeze(1))[mask]  # (N, width)
    return F.normalize(F.pad(rows, (0, drawn.shape[1] - width)), dim=1)
