"""A head from outside: blocks that add to their input, then one linear map.

grit train zinc-mini model.head=residual model.head_layers=3 --plugin examples/plugins/residual_head.py
"""

from torch import nn

import grit
from grit.nn.activation import activation_function


class ResidualHead(nn.Module):
    """h <- h + act(W h), one time less than there are layers, then D -> T.

    Args:
        hidden_dim: D.
        num_outputs: T.
        num_layers: Linear maps in all.
        activation: Entry of ``grit.nn.activation.ACTIVATIONS``.
    """

    def __init__(self, *, hidden_dim, num_outputs, num_layers, activation):
        super().__init__()
        self.hidden = nn.ModuleList(nn.Linear(hidden_dim, hidden_dim) for _ in range(num_layers - 1))
        self.out = nn.Linear(hidden_dim, num_outputs)
        self.activation = activation_function(activation)

    def forward(self, rows):
        """Predict: (R, D) -> (R, T)."""
        for linear in self.hidden:
            rows = rows + self.activation(linear(rows))
        return self.out(rows)


grit.HEADS["residual"] = ResidualHead
