"""Graphormer-URPE (Luo et al. 2022): Graphormer whose attention weights are multiplied by a learned number for each distance."""

from grit.models.blocks.graphormer_biases import DistanceTable
from grit.models.transformers.graphormer import Graphormer


class GraphormerUrpe(Graphormer):
    """α_ij = r_φ(i,j) Softmax_j( (W_Q x_i)·(W_K x_j) / sqrt(C) + b_φ(i,j) + c_ij ): rows need not sum to 1.

    r is a table like b, with a number for every head and distance and one for pairs with the token. It begins with 1, so that the
    model begins as Graphormer. All else, and all arguments, as in `grit.models.transformers.graphormer.Graphormer`.
    """

    def make_factor(self, num_heads: int) -> DistanceTable:
        """The table r."""
        return DistanceTable(num_heads, self.num_distances)
