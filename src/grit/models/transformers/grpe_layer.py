"""The layer of GRPE, and the relations it reads; its equations stand in `grit.models.transformers.grpe`.

Shape letters: N' tokens, P' their pairs, E edges, H heads, C channels per head, D = H*C, K distances, R rows of embeddings of
relations.
"""

from math import sqrt
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from grit.kernels.plain import at_pairs
from grit.models.blocks import Tokens
from grit.nn.attention.contract import check_heads


class Relations(NamedTuple):
    """Who attends to whom, and what they are to each other.

    Attributes:
        tokens: The nodes, then the task token of each graph, and their pairs.
        hop: (P',) row of the distance: 0 to K - 1, K for longer, K + 1 to or from a task token, K + 2 for no way.
        kind: (P',) row for what is not an edge: K + 3 no edge, K + 4 to or from a task token, K + 5 an edge, all zero.
        source: (E,) key of each edge that counts.
        target: (E,) query of each.
        edge_pair: (E,) its pair.
    """

    tokens: Tokens
    hop: Tensor
    kind: Tensor
    source: Tensor
    target: Tensor
    edge_pair: Tensor


class GrpeLayer(nn.Module):
    """One layer: x (N', D) -> (N', D), see `grit.models.transformers.grpe`.

    Args:
        hidden_dim: D.
        ffn_dim: Width of the FFN.
        num_heads: H.
        dropout: After attention and FFN.
        attention_dropout: On the attention weights.
    """

    def __init__(
        self, *, hidden_dim: int, ffn_dim: int, num_heads: int, dropout: float, attention_dropout: float
    ) -> None:
        super().__init__()
        self.shape = (num_heads, check_heads(hidden_dim, num_heads))
        self.attention_dropout = attention_dropout
        self.norm = nn.LayerNorm(hidden_dim)
        self.query, self.key, self.value = (nn.Linear(hidden_dim, hidden_dim) for _ in range(3))
        self.out = nn.Sequential(nn.Linear(hidden_dim, hidden_dim), nn.Dropout(dropout))
        self.ffn = nn.Sequential(
            nn.LayerNorm(hidden_dim),
            nn.Linear(hidden_dim, ffn_dim),
            nn.GELU(),
            nn.Linear(ffn_dim, hidden_dim),
            nn.Dropout(dropout),
        )

    def forward(self, x: Tensor, embedded: list[tuple[Tensor, Tensor]], relations: Relations) -> Tensor:
        """Attend; ``embedded`` holds rows (R, D) and edges (E, D) for query, key and value."""
        tokens, normed = relations.tokens, self.norm(x)
        query, key, value = (each(normed).view(-1, *self.shape) for each in (self.query, self.key, self.value))
        (for_query, query_edge), (for_key, key_edge), (for_value, value_edge) = (
            (rows.view(-1, *self.shape), edge.view(-1, *self.shape)) for rows, edge in embedded
        )  # (R, H, C), (E, H, C)
        logits = (at_pairs(query, tokens.query) * at_pairs(key, tokens.key)).sum(-1)  # (P', H)
        logits = logits + _pick(query, for_query, tokens.query, relations) + _pick(key, for_key, tokens.key, relations)
        of_edge = at_pairs(query, relations.target) * query_edge + at_pairs(key, relations.source) * key_edge
        logits = logits.index_add(0, relations.edge_pair, of_edge.sum(-1)) / sqrt(self.shape[1])
        alpha = F.dropout(tokens.softmax(logits), self.attention_dropout, self.training)  # (P', H)
        total = tokens.sum(alpha.unsqueeze(-1) * at_pairs(value, tokens.key))  # (N', H, C)
        total = total + torch.einsum("nrh,rhc->nhc", _shares(alpha, for_value.shape[0], relations), for_value)
        of_edge = at_pairs(alpha, relations.edge_pair).unsqueeze(-1) * value_edge  # (E, H, C)
        total = total.index_add(0, relations.target, of_edge)
        x = x + self.out(total.flatten(1))
        updated: Tensor = x + self.ffn(x)
        return updated


def _pick(vectors: Tensor, rows: Tensor, at: Tensor, relations: Relations) -> Tensor:
    """Products of what each pair reads at a token with its two rows: (N', H, C), (R, H, C), (P',) -> (P', H)."""
    products = torch.einsum("nhc,rhc->nrh", vectors, rows).flatten(0, 1)  # (N' R, H)
    first = at * rows.shape[0]
    return at_pairs(products, first + relations.hop) + at_pairs(products, first + relations.kind)


def _shares(alpha: Tensor, num_rows: int, relations: Relations) -> Tensor:
    """How much attention of each token goes to each row: (P', H) -> (N', R, H)."""
    tokens = relations.tokens
    first = tokens.query * num_rows
    shares = alpha.new_zeros(tokens.num_tokens * num_rows, alpha.shape[1])
    shares = shares.index_add(0, first + relations.hop, alpha).index_add(0, first + relations.kind, alpha)
    return shares.view(tokens.num_tokens, num_rows, -1)
