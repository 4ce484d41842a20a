"""Groups of rows, such as the nodes of each graph, padded to the largest, for attention by matrix products.

Batches are packed. Where a pair of nodes carries one number per head and no vector, a padded block of all graphs is several times
faster on CPU than reading the vectors of both ends pair by pair.

Shape letters: N rows in all, P pairs, B groups, n places of each, H heads, C channels per head, D = H*C.
"""

from math import sqrt

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from grit.graphs.packed import offsets
from grit.memory import check_fits
from grit.nn.attention.contract import check_heads


class Grid:
    """Where packed rows stand in B rows of n places.

    Args:
        sizes: (B,) rows of each group, such as ``batch.graphs.nodes_per_graph``.
        tokens: Places at the beginning of each group that a model keeps for tokens of its own.

    Attributes:
        num_groups: B.
        size: n, the rows of the largest group, and the tokens.
        place: (N,) the place of each row within its group.
        row: (N,) its place in the flattened grid (B * n).
        occupied: (B, n) whether there is a row, or a token.
    """

    def __init__(self, sizes: Tensor, tokens: int = 0) -> None:
        self.num_groups, self.size = sizes.numel(), int(sizes.max()) + tokens
        group = torch.repeat_interleave(sizes)  # (N,)
        self.place = torch.arange(group.numel(), device=sizes.device) - offsets(sizes)[group] + tokens
        self.row = group * self.size + self.place
        self.occupied = torch.arange(self.size, device=sizes.device) < (sizes + tokens).unsqueeze(1)

    def spread(self, x: Tensor) -> Tensor:
        """(N, D) -> (B, n, D), 0 where there is no row."""
        places = x.new_zeros(self.num_groups * self.size, x.shape[1]).index_copy(0, self.row, x)
        return places.view(self.num_groups, self.size, -1)

    def collect(self, places: Tensor) -> Tensor:
        """(B, n, D) -> (N, D)."""
        return places.flatten(0, 1).index_select(0, self.row)

    def add_pairs(self, values: Tensor, query: Tensor, key: Tensor) -> Tensor:
        """(M, H) values of pairs of nodes -> (B, H, n, n), their sums at [query, key], 0 elsewhere."""
        cells = self.num_groups * self.size**2
        check_fits(cells, values.shape[1] * values.element_size(), values.device, "pairs padded to the largest graph")
        at = self.row[query] * self.size + self.place[key]
        grid = values.new_zeros(cells, values.shape[1]).index_add(0, at, values)
        return grid.view(self.num_groups, self.size, self.size, -1).permute(0, 3, 1, 2)

    def mark_pairs(self, query: Tensor, key: Tensor) -> Tensor:
        """(B, 1, n, n) bool: which pairs of places are listed."""
        marked = torch.zeros(self.num_groups * self.size**2, dtype=torch.bool, device=query.device)
        marked[self.row[query] * self.size + self.place[key]] = True
        return marked.view(self.num_groups, 1, self.size, self.size)


def split_heads(places: Tensor, num_heads: int) -> Tensor:
    """(B, n, D) -> (B, H, n, C)."""
    return places.view(*places.shape[:2], num_heads, places.shape[2] // num_heads).transpose(1, 2)


class GridAttention(nn.Module):
    """x̂_i = W_O Σ_j f_ij Softmax_j( (W_Q x_i)·(W_K x_j) / sqrt(C) + b_ij ) W_V x_j, all maps with bias.

    Args:
        hidden_dim: D.
        num_heads: H, a divisor of D.
        attention_dropout: Probability with which a weight is dropped, after the factor.
    """

    def __init__(self, hidden_dim: int, num_heads: int, attention_dropout: float = 0.0) -> None:
        super().__init__()
        check_heads(hidden_dim, num_heads)
        self.num_heads, self.attention_dropout = num_heads, attention_dropout
        self.query, self.key, self.value, self.out = (nn.Linear(hidden_dim, hidden_dim) for _ in range(4))
        for linear in (self.query, self.key, self.value, self.out):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)

    def weights(self, x: Tensor, allowed: Tensor, bias: Tensor | None = None, factor: Tensor | None = None) -> Tensor:
        """f_ij Softmax_j(...), (B, H, n, n), before dropout; arguments as in `forward`."""
        query, key = (split_heads(linear(x), self.num_heads) for linear in (self.query, self.key))
        logits = query @ key.mT / sqrt(query.shape[-1])
        if bias is not None:
            logits = logits + bias
        # Not -inf: a place without a node may have nothing to attend to.
        weights = logits.masked_fill(~allowed, torch.finfo(logits.dtype).min).softmax(-1)
        return weights if factor is None else weights * factor

    def forward(self, x: Tensor, allowed: Tensor, bias: Tensor | None = None, factor: Tensor | None = None) -> Tensor:
        """Attend: (B, n, D) -> (B, n, D).

        Args:
            x: The places.
            allowed: Bool, broadcast to (B, H, n, n): which keys a query attends to. For every node at least one.
            bias: b, (B, H, n, n), or None for 0.
            factor: f, (B, H, n, n), or None for 1.
        """
        alpha = F.dropout(self.weights(x, allowed, bias, factor), self.attention_dropout, self.training)
        attended = alpha @ split_heads(self.value(x), self.num_heads)  # (B, H, n, C)
        out: Tensor = self.out(attended.transpose(1, 2).flatten(2))
        return out
