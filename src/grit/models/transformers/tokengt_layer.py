"""The layer of TokenGT.

Shape letters: B graphs, L the most tokens that one graph has, H heads, C channels per head, D = H*C.
"""

import torch.nn.functional as F
from torch import Tensor, nn

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
