"""What the attentions with dot products have in common.

Shape letters: N nodes of the batch, P node pairs, H heads, C channels per head, D = H*C.
"""

from math import sqrt

import torch.nn.functional as F
from torch import Tensor

from grit.graphs.pairs import Pairs
from grit.kernels.plain import at_pairs, row_softmax, row_sum
from grit.nn.attention.contract import AttentionOutput


def scaled_products(query: Tensor, key: Tensor, pairs: Pairs, scale: Tensor | float = 1.0) -> Tensor:
    """Σ_c query_ic key_jc scale_ijc / sqrt(C): query and key (N, H, C), scale (P, H, C) or a number -> (P, H)."""
    products = at_pairs(query, pairs.query) * at_pairs(key, pairs.key) * scale  # (P, H, C)
    return products.sum(-1) / sqrt(query.shape[-1])


def attend(
    logits: Tensor,
    value: Tensor,
    pairs: Pairs,
    *,
    clamp: float | None,
    attention_dropout: float,
    gate: Tensor | None = None,
) -> AttentionOutput:
    """x̂_i = Σ_j Softmax_j(logits_ij) gate_ij value_j, without pairs.

    Args:
        logits: (P, H).
        value: (N, H, C).
        pairs: The pairs.
        clamp: Logits are kept within ± this; None leaves them free.
        attention_dropout: Probability with which a weight is dropped after softmax and gate.
        gate: (P, H), or None for 1.
    """
    if clamp is not None:
        logits = logits.clamp(-clamp, clamp)
    weights = row_softmax(logits, pairs)  # (P, H)
    alpha = F.dropout(weights if gate is None else weights * gate, attention_dropout)  # (P, H)
    node = row_sum(alpha.unsqueeze(-1) * at_pairs(value, pairs.key), pairs).flatten(1)  # (N, D)
    return AttentionOutput(node=node, pair=None, weights=weights)
