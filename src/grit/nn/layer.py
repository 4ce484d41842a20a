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

from collections.abc import Callable

import torch
from torch import Tensor, nn

from grit.errors import GritError
from grit.graphs.pairs import Pairs
from grit.kernels.dropout import draw_seed, dropout
from grit.kernels.nodes import feed_forward, update_nodes
from grit.kernels.pair_attention import PairResult
from grit.nn.activation import activation_function
from grit.nn.attention import ATTENTIONS
from grit.nn.attention.contract import PairRows
from grit.nn.attention.grit import GritAttention
from grit.nn.norm import BatchNorm

NORMS: dict[str, Callable[[int], nn.Module]] = {"batch": BatchNorm, "layer": nn.LayerNorm}


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
        norm: ``batch`` or ``layer``.
        clamp: Bound on the attention logits; None for none.
        activation: Of the FFN, ``relu`` or ``gelu``.

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
        """Update nodes and pairs."""
        x, rows = self.step(x, PairRows(pair), pairs, log_degree)
        return x, rows.normalised()

    def step(self, x: Tensor, pair: PairRows, pairs: Pairs, log_degree: Tensor) -> tuple[Tensor, PairRows]:
        """`forward` on pairs whose normalisation is left to whoever reads them: what layers of one model hand on."""
        self.check(x, log_degree)
        if isinstance(self.attention, GritAttention) and self.attention.can_fuse(x, pair):
            return self._fused_step(self.attention, x, pair, pairs, log_degree)
        rows = pair.normalised()  # (P, D)
        attended = self.attention(x, rows, pairs)
        if self.update_pairs:
            rows = self.pair_norm(rows + self.pair_out(self._drop(attended.pair)))  # (P, D)
        return self._update_nodes(x, attended.node, log_degree), PairRows(rows)

    def _fused_step(
        self, attention: GritAttention, x: Tensor, pair: PairRows, pairs: Pairs, log_degree: Tensor
    ) -> tuple[Tensor, PairRows]:
        """The same with fused kernels (`grit.kernels`)."""
        result = attention.fused(
            x,
            pair,
            pairs,
            self.pair_out if self.update_pairs else None,
            pair_dropout=self._dropout if self.update_pairs else 0.0,
            want_moments=self.training,
        )
        if self.update_pairs:
            pair = _normalise_later(self.pair_norm, result.out, result.mean, result.deviations)
        if self.activation is torch.relu and isinstance(self.node_norm, BatchNorm) and not log_degree.requires_grad:
            return self._fused_update_nodes(attention, x, result, log_degree.to(x.dtype)), pair
        return self._update_nodes(x, attention.node_of(result), log_degree), pair

    def _fused_update_nodes(
        self, attention: GritAttention, x: Tensor, result: PairResult, log_degree: Tensor
    ) -> Tensor:
        """The same as `_update_nodes` with fused kernels, where both normalisations are over the batch."""
        updated = update_nodes(
            result.node_sum,
            result.pair_sum,
            attention.pair_value,
            x,
            None if self.degree_scaler is None else self.degree_scaler.theta,
            log_degree,
            self.node_out.weight,
            self.node_out.bias,
            draw_seed() if self._dropout else None,
            self._dropout,
            self.training,
        )
        fed = feed_forward(
            *_normalise_later(self.node_norm, *updated),
            self.ffn_in.weight,
            self.ffn_in.bias,
            self.ffn_out.weight,
            self.ffn_out.bias,
            draw_seed() if self._dropout else None,
            self._dropout,
            self.training,
        )
        return _normalise_later(self.ffn_norm, *fed).normalised()

    @property
    def _dropout(self) -> float:
        return self.dropout if self.training else 0.0

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

    def _update_nodes(self, x: Tensor, node: Tensor, log_degree: Tensor) -> Tensor:
        """Residual, normalisation and feed-forward network around what the attention gives."""
        x = self.node_norm(x + self._node_update(node, log_degree))  # (N, D)
        out: Tensor = self.ffn_norm(x + self._ffn(x))  # (N, D)
        return out

    def _node_update(self, node: Tensor, log_degree: Tensor) -> Tensor:
        node = self._drop(node)
        if self.degree_scaler is not None:
            node = self.degree_scaler(node, log_degree)
        out: Tensor = self.node_out(node)
        return out

    def _ffn(self, x: Tensor) -> Tensor:
        out: Tensor = self.ffn_out(self._drop(self.activation(self.ffn_in(x))))
        return out

    def _drop(self, x: Tensor) -> Tensor:
        return dropout(x, self._dropout, draw_seed()) if self._dropout else x

    def extra_repr(self) -> str:
        """The arguments that no submodule shows."""
        return f"dropout={self.dropout}, update_pairs={self.update_pairs}"


def _normalise_later(norm: nn.Module, rows: Tensor, mean: Tensor, deviations: Tensor) -> PairRows:
    """Rows with the scale and shift that batch normalisation comes to; any other kind is applied at once."""
    if isinstance(norm, BatchNorm):
        return PairRows(rows, *norm.as_affine(mean, deviations, rows.shape[0]))
    return PairRows(norm(rows))
