"""SAN's attention over all pairs (Kreuzer et al. 2021), of the paper's synthetic experiment.

    α_ij = Softmax_j( Σ_c (W_Q x_i)_c (W_K x_j)_c (W_E e_ij)_c / sqrt(C) ),     x̂_i = Σ_j α_ij W_V x_j

Every channel of the product is modulated by a projection of the pair. Pairs are read and never rewritten.

SAN proper runs two of these, one over the edges of the graph and one over the other pairs, each with maps of its own, mixed
by a constant γ. This is its global component: one set of maps for all pairs, which learns of edges from ``e`` alone. As in
SAN, logits are clamped to ±5, no map has a bias, and all start as torch's linear maps do.

Shape letters: N nodes of the batch, P node pairs, H heads, C channels per head, D = H*C.
"""

from typing import ClassVar

from torch import Tensor, nn

from grit.graphs.pairs import Pairs
from grit.nn.attention.contract import AttentionOutput, PairAttention, check_heads, check_rows
from grit.nn.attention.dot_product import attend, scaled_products


class SanAttention(PairAttention):
    """Scaled dot-product attention whose products are modulated by the pair representation.

    Args:
        hidden_dim: D.
        num_heads: H, a divisor of D.
        attention_dropout: Probability with which an attention weight is dropped after the softmax.
        clamp: Logits are kept within ± this; None leaves them free.
    """

    makes_pairs: ClassVar[bool] = False

    def __init__(
        self, *, hidden_dim: int, num_heads: int, attention_dropout: float = 0.0, clamp: float | None = 5.0
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.head_dim = check_heads(hidden_dim, num_heads)
        self.attention_dropout = attention_dropout
        self.clamp = clamp
        self.query = nn.Linear(hidden_dim, hidden_dim, bias=False)
        self.key = nn.Linear(hidden_dim, hidden_dim, bias=False)
        self.value = nn.Linear(hidden_dim, hidden_dim, bias=False)
        self.pair_scale = nn.Linear(hidden_dim, hidden_dim, bias=False)

    def forward(self, x: Tensor, pair: Tensor, pairs: Pairs) -> AttentionOutput:
        """Attend: x (N, D) and pair (P, D) -> `AttentionOutput` without pairs."""
        check_rows(x, pair, pairs)
        query, key, value = (self._heads(linear(x)) for linear in (self.query, self.key, self.value))  # (N, H, C)
        scale = self._heads(self.pair_scale(pair))  # (P, H, C)
        logits = scaled_products(query, key, pairs, scale)  # (P, H)
        dropout = self.attention_dropout if self.training else 0.0
        return attend(logits, value, pairs, clamp=self.clamp, attention_dropout=dropout)

    def _heads(self, flat: Tensor) -> Tensor:
        return flat.view(-1, self.num_heads, self.head_dim)  # (..., D) -> (..., H, C)
