"""GRIT's attention, Section 3.2 of the paper, Equation (2).

    ê_ij = σ( ρ( (W_Q x_i + W_K x_j) ⊙ W_Ew e_ij ) + W_Eb e_ij )
    α_ij = Softmax_j( W_A ê_ij )
    x̂_i  = Σ_j α_ij (W_V x_j + W_Ev ê_ij)

Names in the paper and here: ``W_Q W_K W_V`` query, key, value; ``W_Ew W_Eb`` pair_scale, pair_shift; ``W_A`` score;
``W_Ev`` pair_value; ``ρ`` rho, the signed_sqrt; ``σ`` activation; ``e`` pair. The output projections ``W_O W_Eo`` (node_out,
pair_out) and the degree scaler ``θ1 θ2`` are in `grit.nn.layer`; ``P`` (rrwp) enters in `grit.nn.stem`.

As in the released code, and not in the paper: logits are clamped to ±5, and only W_Q, W_Ew and W_Eb have biases.

Shape letters: N nodes of the batch, P node pairs, H heads, C channels per head, D = H*C.
"""

from collections.abc import Callable
from math import sqrt
from typing import ClassVar

import torch
from torch import Tensor, nn

from grit.graphs.pairs import Pairs
from grit.kernels.dropout import dropout
from grit.kernels.plain import at_pairs, row_softmax, row_sum, signed_sqrt
from grit.nn.activation import activation_function
from grit.nn.attention.contract import AttentionOutput, PairAttention, check_heads, check_rows


def grit_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    pair_scale: Tensor,
    pair_shift: Tensor,
    score: Tensor,
    pair_value: Tensor,
    pairs: Pairs,
    *,
    clamp: float | None,
    activation: Callable[[Tensor], Tensor],
    attention_dropout: float = 0.0,
    seed: Tensor | None = None,
    rho: Callable[[Tensor], Tensor] = signed_sqrt,
) -> AttentionOutput:
    """Equation (2), all heads at once, everything linear in x and e already projected.

    ``seed`` is that of the dropout; None draws one.

    Shapes:
        query, key, value: (N, H, C), that is W_Q x, W_K x, W_V x.
        pair_scale, pair_shift: (P, H, C), that is W_Ew e, W_Eb e.
        score: (H, C), W_A of each head. pair_value: (H, C, C), W_Ev of each head, [head, in, out].
    """
    i, j = pairs.query, pairs.key
    e_hat = activation(rho((at_pairs(query, i) + at_pairs(key, j)) * pair_scale) + pair_shift)  # (P, H, C)
    logits = (e_hat * score).sum(-1)  # (P, H)
    if clamp is not None:
        logits = logits.clamp(-clamp, clamp)
    weights = row_softmax(logits, pairs)  # (P, H)
    alpha = dropout(weights, attention_dropout, seed)  # (P, H)
    alpha = alpha.unsqueeze(-1)  # (P, H, 1)
    node = row_sum(alpha * at_pairs(value, j), pairs)  # (N, H, C)
    # W_Ev is linear, so it is applied once per node to the sum instead of once per pair.
    node = node + torch.einsum("nhc,hcd->nhd", row_sum(alpha * e_hat, pairs), pair_value)  # (N, H, C)
    return AttentionOutput(node=node.flatten(1), pair=e_hat.flatten(1), weights=weights)


class GritAttention(PairAttention):
    """GRIT's attention with its weights: x (N, D), pair (P, D) -> x̂ (N, D), ê (P, D), α (P, H).

    Args:
        hidden_dim: D.
        num_heads: H, a divisor of D.
        attention_dropout: Probability with which an attention weight is dropped after the softmax.
        clamp: Logits are kept within ± this; None leaves them free.
        activation: σ, ``relu`` or ``gelu``.
    """

    makes_pairs: ClassVar[bool] = True

    def __init__(
        self,
        *,
        hidden_dim: int,
        num_heads: int,
        attention_dropout: float = 0.0,
        clamp: float | None = 5.0,
        activation: str = "relu",
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.head_dim = check_heads(hidden_dim, num_heads)
        self.attention_dropout = attention_dropout
        self.clamp = clamp
        self.activation = activation_function(activation)
        self.query = nn.Linear(hidden_dim, hidden_dim)
        self.key = nn.Linear(hidden_dim, hidden_dim, bias=False)
        self.value = nn.Linear(hidden_dim, hidden_dim, bias=False)
        self.pair_scale = nn.Linear(hidden_dim, hidden_dim)
        self.pair_shift = nn.Linear(hidden_dim, hidden_dim)
        self.score = nn.Parameter(torch.empty(num_heads, self.head_dim))
        self.pair_value = nn.Parameter(torch.empty(num_heads, self.head_dim, self.head_dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """The released initialisation; biases keep torch's."""
        dim, heads, channels = self.query.in_features, self.num_heads, self.head_dim
        for linear in (self.query, self.key, self.value):
            nn.init.xavier_normal_(linear.weight)
        for linear in (self.pair_scale, self.pair_shift):
            nn.init.normal_(linear.weight, std=sqrt(2 / (3 * dim)))  # xavier of one (2D, D) matrix for both
        nn.init.normal_(self.score, std=sqrt(2 / (heads + channels)))
        nn.init.normal_(self.pair_value, std=sqrt(2 / (channels * (heads + channels))))

    def forward(self, x: Tensor, pair: Tensor, pairs: Pairs) -> AttentionOutput:
        """Attend: x (N, D) and pair (P, D) -> `AttentionOutput`."""
        check_rows(x, pair, pairs)
        return grit_attention(
            self._heads(self.query(x)),
            self._heads(self.key(x)),
            self._heads(self.value(x)),
            self._heads(self.pair_scale(pair)),
            self._heads(self.pair_shift(pair)),
            self.score,
            self.pair_value,
            pairs,
            clamp=self.clamp,
            activation=self.activation,
            attention_dropout=self.attention_dropout if self.training else 0.0,
            rho=self.rho,
        )

    def rho(self, z: Tensor) -> Tensor:
        """ρ, any shape."""
        return signed_sqrt(z)

    def _heads(self, flat: Tensor) -> Tensor:
        return flat.view(-1, self.num_heads, self.head_dim)  # (..., D) -> (..., H, C)

    def extra_repr(self) -> str:
        """The arguments that no submodule shows."""
        return f"num_heads={self.num_heads}, attention_dropout={self.attention_dropout}, clamp={self.clamp}"
