"""EGT's attention (Hussain et al. 2022), of the paper's synthetic experiment.

    ê_ij = clip( (W_Q x_i)·(W_K x_j) / sqrt(C), ±5 ) + W_E e_ij
    α_ij = Softmax_j( ê_ij ),     x̂_i = Σ_j α_ij sigmoid( W_G e_ij ) W_V x_j

Each pair both shifts the logit and opens or shuts a gate, so that a row may let less than everything through. The softmax
itself is given as ``weights``, the gate only acts on the sum.

Pairs are rewritten from ê, one number per head. It is handed on in all C channels of its head, so that the layer's output
projection of pairs is EGT's linear map from H numbers to D.

Shape letters: N nodes of the batch, P node pairs, H heads, C channels per head, D = H*C.
"""

from typing import ClassVar

import torch
from torch import Tensor, nn

from grit.graphs.pairs import Pairs
from grit.nn.attention.contract import AttentionOutput, PairAttention, check_heads, check_rows
from grit.nn.attention.dot_product import attend, scaled_products


class EgtAttention(PairAttention):
    """Scaled dot-product attention with a bias and a gate from the pair representation.

    Args:
        hidden_dim: D.
        num_heads: H, a divisor of D.
        attention_dropout: Probability with which an attention weight is dropped after softmax and gate.
        clamp: Logits are kept within ± this, the pairs' share included; None, as EGT has it, leaves them free.
        product_clip: The scaled products alone are kept within ± this, before the pairs' share is added; EGT's 5.
    """

    makes_pairs: ClassVar[bool] = True

    def __init__(
        self,
        *,
        hidden_dim: int,
        num_heads: int,
        attention_dropout: float = 0.0,
        clamp: float | None = None,
        product_clip: float = 5.0,
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.head_dim = check_heads(hidden_dim, num_heads)
        self.attention_dropout = attention_dropout
        self.clamp = clamp
        self.product_clip = product_clip
        self.query = nn.Linear(hidden_dim, hidden_dim)
        self.key = nn.Linear(hidden_dim, hidden_dim)
        self.value = nn.Linear(hidden_dim, hidden_dim)
        self.pair_bias = nn.Linear(hidden_dim, num_heads)
        self.pair_gate = nn.Linear(hidden_dim, num_heads)
        for linear in (self.query, self.key, self.value, self.pair_bias, self.pair_gate):
            nn.init.xavier_uniform_(linear.weight)

    def forward(self, x: Tensor, pair: Tensor, pairs: Pairs) -> AttentionOutput:
        """Attend: x (N, D) and pair (P, D) -> `AttentionOutput`."""
        check_rows(x, pair, pairs)
        query, key, value = (self._heads(linear(x)) for linear in (self.query, self.key, self.value))  # (N, H, C)
        product = scaled_products(query, key, pairs)  # (P, H)
        logits = product.clamp(-self.product_clip, self.product_clip) + self.pair_bias(pair)  # (P, H)
        if self.clamp is not None:
            logits = logits.clamp(-self.clamp, self.clamp)
        gate = torch.sigmoid(self.pair_gate(pair))  # (P, H)
        dropout = self.attention_dropout if self.training else 0.0
        attended = attend(logits, value, pairs, clamp=None, attention_dropout=dropout, gate=gate)
        return attended._replace(pair=logits.repeat_interleave(self.head_dim, 1))

    def _heads(self, flat: Tensor) -> Tensor:
        return flat.view(-1, self.num_heads, self.head_dim)  # (N, D) -> (N, H, C)
