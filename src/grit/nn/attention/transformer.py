"""The attention of the plain Transformer (Vaswani et al. 2017), the global part of GraphGPS.

    α_ij = Softmax_j( (W_Q x_i)·(W_K x_j) / sqrt(C) ),     x̂_i = Σ_j α_ij W_V x_j

Pairs say which keys a query attends to; their representation is neither read nor rewritten.

Shape letters: N nodes of the batch, P node pairs, H heads, C channels per head, D = H*C.
"""

from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor, nn

from grit.graphs.pairs import Pairs
from grit.kernels.plain import at_pairs, row_softmax, row_sum
from grit.nn.attention.contract import AttentionOutput, PairAttention, check_heads, check_rows


class TransformerAttention(PairAttention):
    """Scaled dot-product attention.

    Args:
        hidden_dim: D.
        num_heads: H, a divisor of D.
        attention_dropout: Probability with which an attention weight is dropped after the softmax.
        clamp: Logits are kept within ± this; None, as the Transformer has it, leaves them free.
    """

    makes_pairs: ClassVar[bool] = False
    reads_pairs: ClassVar[bool] = False

    def __init__(
        self, *, hidden_dim: int, num_heads: int, attention_dropout: float = 0.0, clamp: float | None = None
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.head_dim = check_heads(hidden_dim, num_heads)
        self.attention_dropout = attention_dropout
        self.clamp = clamp
        self.query = nn.Linear(hidden_dim, hidden_dim)
        self.key = nn.Linear(hidden_dim, hidden_dim, bias=False)
        self.value = nn.Linear(hidden_dim, hidden_dim, bias=False)
        for linear in (self.query, self.key, self.value):
            nn.init.xavier_normal_(linear.weight)

    def forward(self, x: Tensor, pair: Tensor, pairs: Pairs) -> AttentionOutput:
        """Attend: x (N, D) -> `AttentionOutput` without pairs; pair (P, D) is not read."""
        check_rows(x, pair, pairs)
        i, j = pairs.query, pairs.key
        query, key, value = (self._heads(linear(x)) for linear in (self.query, self.key, self.value))  # (N, H, C)
        logits = (at_pairs(query, i) * at_pairs(key, j)).sum(-1) / self.head_dim**0.5  # (P, H)
        if self.clamp is not None:
            logits = logits.clamp(-self.clamp, self.clamp)
        weights = row_softmax(logits, pairs)  # (P, H)
        alpha = F.dropout(weights, self.attention_dropout, self.training)  # (P, H)
        node = row_sum(alpha.unsqueeze(-1) * at_pairs(value, j), pairs).flatten(1)  # (N, D)
        return AttentionOutput(node=node, pair=None, weights=weights)

    def _heads(self, flat: Tensor) -> Tensor:
        return flat.view(-1, self.num_heads, self.head_dim)  # (N, D) -> (N, H, C)
