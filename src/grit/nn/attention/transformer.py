"""The attention of the plain Transformer (Vaswani et al. 2017), the global part of GraphGPS.

    α_ij = Softmax_j( (W_Q x_i)·(W_K x_j) / sqrt(C) ),     x̂_i = Σ_j α_ij W_V x_j

Pairs say which keys a query attends to; their representation is neither read nor rewritten.

Shape letters: N nodes of the batch, P node pairs, H heads, C channels per head, D = H*C.
"""

from typing import ClassVar

from torch import Tensor, nn

from grit.graphs.pairs import Pairs
from grit.nn.attention.contract import AttentionOutput, PairAttention, check_heads, check_rows
from grit.nn.attention.dot_product import attend, scaled_products


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
        query, key, value = (self._heads(linear(x)) for linear in (self.query, self.key, self.value))  # (N, H, C)
        logits = scaled_products(query, key, pairs)  # (P, H)
        dropout = self.attention_dropout if self.training else 0.0
        return attend(logits, value, pairs, clamp=self.clamp, attention_dropout=dropout)

    def _heads(self, flat: Tensor) -> Tensor:
        return flat.view(-1, self.num_heads, self.head_dim)  # (N, D) -> (N, H, C)
