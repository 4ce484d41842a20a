"""One layer of GRIT: attention, degree scaler, and a feed-forward network, Sections 3.2 and 3.3 of the paper.

      x (N, D)       pair (P, D)
         │               │
         └── attention ──┤
         │               │
    degree scaler     pair_out  (W_Eo)
     node_out (W_O)      │
         │               │
    + x, norm        + pair, norm
         │               │
    FFN, + , norm        │
         ▼               ▼
      x (N, D)       pair (P, D)

Batch normalisation, because layer normalisation removes the degree (Proposition 3). As in the released code, and unlike
Equation (4), the degree scaler stands before W_O.

Shape letters: N nodes of the batch, P node pairs, D channels.
"""

import torch
from torch import Tensor, nn

from grit.errors import GritError
from grit.graphs.pairs import Pairs
from grit.kernels.dropout import dropout
from grit.nn.activation import activation_function
from grit.nn.attention import ATTENTIONS
from grit.nn.attention.grit import GritAttention
from grit.nn.can_fuse import fusable, why_not_fused
from grit.nn.fused_stack import run_stack
from grit.nn.norm import NORMS, BatchNorm


class DegreeScaler(nn.Module):
    """x' = x ⊙ θ1 + ln(1 + d) · x ⊙ θ2, Equation (4).

    Args:
        hidden_dim: D.
    """

    def __init__(self, hidden_dim: int) -> None:
        super().__init__()
        self.theta = nn.Parameter(torch.empty(2, hidden_dim))  # θ1, θ2
        nn.init.normal_(self.theta, std=(hidden_dim + 1) ** -0.5)  # the released initialisation: θ1 starts near 0

    def forward(self, x: Tensor, log_degree: Tensor) -> Tensor:
        """Scale: x (N, D), log_degree (N,) -> (N, D)."""
        return x * self.theta[0] + x * log_degree.unsqueeze(1) * self.theta[1]


class GritLayer(nn.Module):
    """One transformer layer over nodes and node pairs.

    Args:
        hidden_dim: D.
        num_heads: H, a divisor of D.
        dropout: On the attention's outputs and inside the FFN.
        attention_dropout: On the attention weights.
        attention: Entry of `ATTENTIONS`.
        scale_by_degree: Whether the degree scaler is there.
        update_pairs: Whether pairs are rewritten. If not they are returned as given; the parameters of the update exist
            all the same, as in the released model, whose last layer has them without using them.
        norm: Entry of `NORMS`.
        clamp: Bound on the attention logits; None for none.
        activation: Of the FFN, entry of `ACTIVATIONS`.

    Shapes:
        x (N, D), pair (P, D), pairs of P, log_degree (N,) -> x (N, D), pair (P, D).
    """

    def __init__(
        self,
        *,
        hidden_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        attention: str = "grit",
        scale_by_degree: bool = True,
        update_pairs: bool = True,
        norm: str = "batch",
        clamp: float | None = 5.0,
        activation: str = "relu",
    ) -> None:
        super().__init__()
        if attention not in ATTENTIONS:
            raise GritError(f"unknown attention {attention!r}; there are {', '.join(ATTENTIONS)}.")
        if norm not in NORMS:
            raise GritError(f"unknown norm {norm!r}; there are {', '.join(NORMS)}.")
        if update_pairs and not ATTENTIONS[attention].makes_pairs:
            raise GritError(f"{attention} attention does not rewrite pairs: it goes with update_pairs=False.")
        self.dropout = dropout
        self.update_pairs = update_pairs
        self.activation = activation_function(activation)
        self.attention = ATTENTIONS[attention](
            hidden_dim=hidden_dim, num_heads=num_heads, attention_dropout=attention_dropout, clamp=clamp
        )
        self.degree_scaler = DegreeScaler(hidden_dim) if scale_by_degree else None
        self.node_out = nn.Linear(hidden_dim, hidden_dim)
        self.pair_out = nn.Linear(hidden_dim, hidden_dim)
        self.node_norm = NORMS[norm](hidden_dim)
        self.pair_norm = NORMS[norm](hidden_dim)
        self.ffn_in = nn.Linear(hidden_dim, 2 * hidden_dim)
        self.ffn_out = nn.Linear(2 * hidden_dim, hidden_dim)
        self.ffn_norm = NORMS[norm](hidden_dim)

    def forward(self, x: Tensor, pair: Tensor, pairs: Pairs, log_degree: Tensor) -> tuple[Tensor, Tensor]:
        """Update nodes and pairs, in the fused unit where that does just this."""
        self.check(x, log_degree)
        if why_not_fused([self], x, pair, log_degree) is None:
            return run_stack([self], x, pair, pairs, log_degree)
        attended = self.attention(x, pair, pairs)
        if self.update_pairs:
            pair = self.pair_norm(pair + self.pair_out(self._drop(attended.pair)))  # (P, D)
        node = self._drop(attended.node)
        if self.degree_scaler is not None:
            node = self.degree_scaler(node, log_degree)
        x = self.node_norm(x + self.node_out(node))  # (N, D)
        x = self.ffn_norm(x + self.ffn_out(self._drop(self.activation(self.ffn_in(x)))))  # (N, D)
        return x, pair

    def check(self, x: Tensor, log_degree: Tensor) -> None:
        """Raise where the layer cannot take these."""
        if self.training and x.shape[0] == 1 and isinstance(self.node_norm, nn.BatchNorm1d):
            raise GritError(
                "the batch holds a single node: batch normalisation in training mode needs at least two. "
                "Use a larger batch size, drop such a last batch, or take norm='layer'."
            )
        if log_degree.shape != x.shape[:1]:
            raise GritError(
                f"log_degree has shape {tuple(log_degree.shape)}, expected one number for each of {x.shape[0]} nodes."
            )

    def _drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout if self.training else 0.0)

    def extra_repr(self) -> str:
        """The arguments that no submodule shows."""
        return f"dropout={self.dropout}, update_pairs={self.update_pairs}"


fusable(GritLayer, GritAttention, DegreeScaler, BatchNorm, nn.Linear)
