"""The layer of EGT; its equations stand in `grit.models.transformers.egt`.

Shape letters: N' tokens, P' their pairs, H heads, C channels per head, D = H*C, F channels of a pair.
"""

from math import sqrt

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from grit.kernels.plain import at_pairs
from grit.models.blocks import Tokens
from grit.nn.attention.contract import check_heads

_CLIP = 5.0


class EgtLayer(nn.Module):
    """One layer: x (N', D), pair (P', F) -> the same, see `grit.models.transformers.egt`.

    Args:
        hidden_dim: D.
        edge_dim: F.
        num_heads: H.
        ffn_factor: Width of the FFNs, in multiples of D and of F.
        dropout: After attention and FFN.
        attention_dropout: On the gated attention weights.
        scales_degree: Whether sums are multiplied by ln(1 + the sum of their gates).
        updates_pairs: Whether pairs are; not in the last layer, after which nobody reads them.
    """

    def __init__(
        self,
        *,
        hidden_dim: int,
        edge_dim: int,
        num_heads: int,
        ffn_factor: float,
        dropout: float,
        attention_dropout: float,
        scales_degree: bool,
        updates_pairs: bool,
    ) -> None:
        super().__init__()
        self.shape = (num_heads, check_heads(hidden_dim, num_heads))
        self.attention_dropout, self.scales_degree = attention_dropout, scales_degree
        self.node_norm, self.pair_norm = nn.LayerNorm(hidden_dim), nn.LayerNorm(edge_dim)
        self.query, self.key, self.value = (nn.Linear(hidden_dim, hidden_dim) for _ in range(3))
        self.bias, self.gate = nn.Linear(edge_dim, num_heads), nn.Linear(edge_dim, num_heads)
        self.node_out = nn.Sequential(nn.Linear(hidden_dim, hidden_dim), nn.Dropout(dropout))
        self.node_ffn = _feed_forward(hidden_dim, ffn_factor, dropout)
        self.pair_out = nn.Sequential(nn.Linear(num_heads, edge_dim), nn.Dropout(dropout)) if updates_pairs else None
        self.pair_ffn = _feed_forward(edge_dim, ffn_factor, dropout) if updates_pairs else None

    def forward(self, x: Tensor, pair: Tensor, tokens: Tokens, num_nodes: int) -> tuple[Tensor, Tensor]:
        """Attend and update; tokens from ``num_nodes`` on are virtual."""
        normed = self.node_norm(x)
        logits, weights, gate = self.attend(normed, self.pair_norm(pair), tokens)
        alpha = F.dropout(weights * gate, self.attention_dropout, self.training)  # (P', H)
        value = self.value(normed).view(-1, *self.shape)  # (N', H, C)
        total = tokens.sum(alpha.unsqueeze(-1) * at_pairs(value, tokens.key))  # (N', H, C)
        if self.scales_degree:
            openness = tokens.sum(gate)  # (N', H)
            scale = torch.cat([torch.log1p(openness[:num_nodes]), torch.ones_like(openness[num_nodes:])])
            total = total * scale.unsqueeze(-1)
        x = x + self.node_out(total.flatten(1))
        x = x + self.node_ffn(x)
        if self.pair_out is not None and self.pair_ffn is not None:
            pair = pair + self.pair_out(logits)
            pair = pair + self.pair_ffn(pair)
        return x, pair

    def attend(self, x: Tensor, pair: Tensor, tokens: Tokens) -> tuple[Tensor, Tensor, Tensor]:
        """From normalised x and pair: ê, its softmax over the keys of each query, and the gates, (P', H) each."""
        query, key = (linear(x).view(-1, *self.shape) for linear in (self.query, self.key))  # (N', H, C)
        product = (at_pairs(query, tokens.query) * at_pairs(key, tokens.key)).sum(-1) / sqrt(self.shape[1])  # (P', H)
        logits = product.clamp(-_CLIP, _CLIP) + self.bias(pair)  # (P', H)
        weights = tokens.softmax(logits)  # (P', H)
        return logits, weights, torch.sigmoid(self.gate(pair))


def scaled_width(width: int, factor: float) -> int:
    """A multiple of a width, rounded; at least 1."""
    return max(1, round(width * factor))


def _feed_forward(width: int, factor: float, dropout: float) -> nn.Sequential:
    inner = scaled_width(width, factor)
    return nn.Sequential(
        nn.LayerNorm(width), nn.Linear(width, inner), nn.ELU(), nn.Linear(inner, width), nn.Dropout(dropout)
    )
