"""An attention from outside: cosines of queries and keys, plus a bias from the pair, at a learned temperature per head.

    grit train zinc-mini model.attention=cosine model.update_pairs=false --plugin examples/plugins/cosine_attention.py

    α_ij = Softmax_j( τ cos(W_Q x_i, W_K x_j) + W_B e_ij ),     x̂_i = Σ_j α_ij W_V x_j

Cosines are bounded, so that large activations cannot make attention attend to one node alone (Henry et al. 2020).
Shape letters: N nodes of the batch, P node pairs, H heads, C channels per head, D = H*C.
"""

import torch
import torch.nn.functional as F
from torch import nn

import grit
from grit.kernels.plain import at_pairs
from grit.nn.attention.contract import PairAttention, check_heads, check_rows
from grit.nn.attention.dot_product import attend


class CosineAttention(PairAttention):
    """Attention by cosines; pairs are read and not rewritten."""

    makes_pairs = False

    def __init__(self, *, hidden_dim, num_heads, attention_dropout=0.0, clamp=5.0):
        super().__init__()
        self.num_heads, self.head_dim = num_heads, check_heads(hidden_dim, num_heads)
        self.attention_dropout, self.clamp = attention_dropout, clamp
        self.query = nn.Linear(hidden_dim, hidden_dim)
        self.key = nn.Linear(hidden_dim, hidden_dim)
        self.value = nn.Linear(hidden_dim, hidden_dim)
        self.bias = nn.Linear(hidden_dim, num_heads)
        self.temperature = nn.Parameter(torch.full((num_heads,), 3.0))

    def forward(self, x, pair, pairs):
        """Attend: x (N, D) and pair (P, D) -> `AttentionOutput` without pairs."""
        check_rows(x, pair, pairs)
        query, key, value = (
            linear(x).view(-1, self.num_heads, self.head_dim) for linear in (self.query, self.key, self.value)
        )  # (N, H, C)
        cosine = F.cosine_similarity(at_pairs(query, pairs.query), at_pairs(key, pairs.key), dim=-1)  # (P, H)
        logits = self.temperature * cosine + self.bias(pair)  # (P, H)
        dropout = self.attention_dropout if self.training else 0.0
        return attend(logits, value, pairs, clamp=self.clamp, attention_dropout=dropout)


grit.ATTENTIONS["cosine"] = CosineAttention
