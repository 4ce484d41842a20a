"""GRIT's attention without the signed square root, a row beside the paper's ablations.

    ê_ij = σ( (W_Q x_i + W_K x_j) ⊙ W_Ew e_ij + W_Eb e_ij )

Everything else is `GritAttention`, weights and their names included. The authors report this model in their rebuttal, as
the one before the square root was introduced.

Shape letters: N nodes of the batch, P node pairs, D channels.
"""

from torch import Tensor

from grit.nn.attention.grit import GritAttention


class GritLinearAttention(GritAttention):
    """`GritAttention` with the identity for ρ: x (N, D), pair (P, D) -> x̂ (N, D), ê (P, D), α (P, H); same arguments."""

    def rho(self, z: Tensor) -> Tensor:
        """The identity."""
        return z
