"""The methods of the synthetic experiment: one attention of `ATTENTIONS`, single-headed, on one encoding and nothing else.

Each is a `Probe` with two forms. `packed` runs the module of `ATTENTIONS` on packed pairs and is the definition. `forward`
is what is trained: the attention weights of one molecule as a dense matrix, without values, sums and maps that the weights
do not depend on. It takes plain tensors, so that it can be mapped over stacked parameters.

Where an encoding says nothing of nodes (or of pairs) they all have the same learned vector.

Shape letters: N nodes of the molecule, P = N*N pairs, F and K widths of node and pair encoding, M frequencies, D channels.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from grit.batches.pair_batch import PairBatch
from grit.kernels.plain import signed_sqrt
from grit.nn.attention import PairAttention
from grit.nn.attention.egt import EgtAttention
from grit.nn.attention.graphormer import GraphormerAttention
from grit.nn.attention.grit import GritAttention
from grit.nn.attention.san import SanAttention
from grit.nn.attention.transformer import TransformerAttention

HIDDEN_DIM = 64
WALK_STEPS = 21  # of RWSE, SPD and RRWP
FREQUENCIES = 10  # of LapPE, as in SAN
SINGULAR_VALUES = 8  # of SVDPE, as in EGT

Attention = TypeVar("Attention", bound=PairAttention)


class Constant(nn.Module):
    """Any (R, F) -> (R, D): the same learned vector for every row, initialised N(0, 1)."""

    def __init__(self, hidden_dim: int) -> None:
        super().__init__()
        self.vector = nn.Parameter(torch.randn(hidden_dim))

    def forward(self, encoding: Tensor) -> Tensor:
        """Spread."""
        return self.vector.expand(encoding.shape[0], -1)


class FrequencyLayer(nn.Module):
    """One layer of a Transformer over the frequencies of each node, normalised after each addition: (N, M, D) -> (N, M, D)."""

    def __init__(self, dim: int, num_heads: int, ffn_dim: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.query_key_value = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)
        self.norm = nn.LayerNorm(dim)
        self.ffn_in = nn.Linear(dim, ffn_dim)
        self.ffn_out = nn.Linear(ffn_dim, dim)
        self.ffn_norm = nn.LayerNorm(dim)

    def forward(self, x: Tensor) -> Tensor:
        """Attend among the M frequencies of each node."""
        n, m, dim = x.shape
        heads = self.query_key_value(x).view(n, m, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)  # (3, N, H, M, C)
        query, key, value = heads.unbind(0)
        alpha = torch.softmax(query @ key.mT / query.shape[-1] ** 0.5, -1)  # (N, H, M, M)
        x = self.norm(x + self.out((alpha @ value).transpose(1, 2).reshape(n, m, dim)))
        out: Tensor = self.ffn_norm(x + self.ffn_out(torch.relu(self.ffn_in(x))))
        return out


class LaplacianTransformer(nn.Module):
    """SAN's encoder of LapPE: eigenvectors and eigenvalues (N, 2M) -> (N, D).

    Each node is the sequence of its (u_m, λ_m), M long, run through a small Transformer of two layers and summed. SAN gives it
    width 8 and four heads beside the features of the node; here, where it is all that a node has, width 16 and one head.

    Args:
        hidden_dim: D.
    """

    def __init__(self, hidden_dim: int, dim: int = 16, num_heads: int = 1, ffn_dim: int = 32) -> None:
        super().__init__()
        self.embed = nn.Linear(2, dim)
        self.layers = nn.ModuleList([FrequencyLayer(dim, num_heads, ffn_dim) for _ in range(2)])
        self.out = nn.Linear(dim, hidden_dim)

    def forward(self, encoding: Tensor) -> Tensor:
        """Encode the nodes of one molecule; it has no more frequencies than nodes."""
        n = encoding.shape[0]
        tokens: Tensor = self.embed(encoding.view(n, 2, -1)[:, :, :n].mT)  # (N, M, dim)
        for layer in self.layers:
            tokens = layer(tokens)
        out: Tensor = self.out(tokens.sum(1))  # (N, D)
        return out


class Probe(nn.Module, ABC, Generic[Attention]):
    """One attention on one encoding.

    Args:
        node_map: (N, F) -> (N, D).
        pair_map: (P, K) -> (P, D).
        attention: With one head.
    """

    def __init__(self, node_map: nn.Module, pair_map: nn.Module, attention: Attention) -> None:
        super().__init__()
        self.node_map = node_map
        self.pair_map = pair_map
        self.attention = attention

    def packed(self, batch: PairBatch) -> Tensor:
        """The attention weights (P,) of a batch, by the module of `ATTENTIONS`."""
        x, pair = self.node_map(batch.node_encoding), self.pair_map(batch.pair_encoding)
        weights: Tensor = self.attention(x, pair, batch.pairs).weights
        return weights.squeeze(1)

    def forward(self, node: Tensor, pair: Tensor) -> Tensor:
        """The attention weights (N, N) of one molecule, from its encodings (N, F) and (P, K)."""
        return torch.softmax(self.logits(node, pair), -1)

    @abstractmethod
    def logits(self, node: Tensor, pair: Tensor) -> Tensor:
        """(N, N), the attention's logits up to a constant for each query."""

    def _product(self, query: nn.Linear, key: nn.Linear, node: Tensor, scale: Tensor | float = 1.0) -> Tensor:
        x = self.node_map(node)
        product: Tensor = (query(x) * scale) @ key(x).T / x.shape[1] ** 0.5
        return product


class TransformerProbe(Probe[TransformerAttention]):
    """Plain attention on RWSE."""

    def __init__(self) -> None:
        attention = TransformerAttention(hidden_dim=HIDDEN_DIM, num_heads=1)
        super().__init__(nn.Linear(WALK_STEPS, HIDDEN_DIM, bias=False), Constant(HIDDEN_DIM), attention)

    def logits(self, node: Tensor, pair: Tensor) -> Tensor:
        """Products alone."""
        return self._product(self.attention.query, self.attention.key, node)


class SanProbe(Probe[SanAttention]):
    """SAN's global attention on its Transformer over LapPE; all pairs have one vector, as SAN's pairs without an edge.

    Logits are not clamped: at the start nearly all logits of a query are beyond SAN's ±5 on the same side, where a clamp has
    no gradient, and with it most problems never leave equal weights.
    """

    def __init__(self) -> None:
        attention = SanAttention(hidden_dim=HIDDEN_DIM, num_heads=1, clamp=None)
        super().__init__(LaplacianTransformer(HIDDEN_DIM), Constant(HIDDEN_DIM), attention)

    def logits(self, node: Tensor, pair: Tensor) -> Tensor:
        """Products whose channels are scaled alike for all pairs."""
        scale = self.attention.pair_scale(self.pair_map(pair[:1]))  # (1, D)
        return _clamped(self._product(self.attention.query, self.attention.key, node, scale), self.attention.clamp)


class EgtProbe(Probe[EgtAttention]):
    """EGT's attention on SVDPE; all pairs have one vector, so that bias and gate say nothing."""

    def __init__(self) -> None:
        attention = EgtAttention(hidden_dim=HIDDEN_DIM, num_heads=1)
        super().__init__(nn.Linear(2 * SINGULAR_VALUES, HIDDEN_DIM, bias=False), Constant(HIDDEN_DIM), attention)

    def logits(self, node: Tensor, pair: Tensor) -> Tensor:
        """Products, clipped."""
        product = self._product(self.attention.query, self.attention.key, node)
        return _clamped(product, self.attention.product_clip)


class GraphormerProbe(Probe[GraphormerAttention]):
    """Graphormer's attention on SPD: a bias for each distance, drawn with Graphormer's own deviation of 0.02.

    The pair is the one-hot distance itself, so that the bias is looked up and not factored through D channels, which would
    make Adam's steps on it D times as long.
    """

    def __init__(self) -> None:
        attention = GraphormerAttention(hidden_dim=WALK_STEPS, num_heads=1)
        nn.init.normal_(attention.pair_bias.weight, std=0.02)
        super().__init__(Constant(WALK_STEPS), nn.Identity(), attention)

    def logits(self, node: Tensor, pair: Tensor) -> Tensor:
        """Biases alone: all nodes being alike, the products are one constant."""
        bias: Tensor = self.attention.pair_bias(pair)  # (P, 1)
        return bias.view(node.shape[0], -1)


class GritProbe(Probe[GritAttention]):
    """GRIT's attention on RRWP. There is no degree scaler: it acts on the sum, not on the weights."""

    def __init__(self) -> None:
        node_map, pair_map = (nn.Linear(WALK_STEPS, HIDDEN_DIM, bias=False) for _ in range(2))
        for linear in (node_map, pair_map):
            nn.init.xavier_uniform_(linear.weight)
        super().__init__(node_map, pair_map, GritAttention(hidden_dim=HIDDEN_DIM, num_heads=1))

    def logits(self, node: Tensor, pair: Tensor) -> Tensor:
        """Equation (2) up to the softmax; maps that follow one another are multiplied first, D channels being more than K."""
        attention, n = self.attention, node.shape[0]
        assert isinstance(self.pair_map, nn.Linear)
        x, first = self.node_map(node), self.pair_map.weight
        scale, shift = (
            F.linear(pair, linear.weight @ first, linear.bias).view(n, n, -1)
            for linear in (attention.pair_scale, attention.pair_shift)
        )
        between = attention.query(x).unsqueeze(1) + attention.key(x).unsqueeze(0)  # (N, N, D)
        e_hat = attention.activation(signed_sqrt(between * scale) + shift)  # (N, N, D)
        return _clamped(e_hat @ attention.score[0], attention.clamp)


def _clamped(logits: Tensor, clamp: float | None) -> Tensor:
    return logits if clamp is None else logits.clamp(-clamp, clamp)


@dataclass(frozen=True)
class Method:
    """One trained row of the tables.

    Attributes:
        label: As the paper writes it.
        encoding: Entry of `ENCODINGS`.
        size: Its ``walk_steps``.
        probe: Draws a new one.
    """

    label: str
    encoding: str
    size: int
    probe: Callable[[], Probe]  # type: ignore[type-arg]


METHODS: dict[str, Method] = {
    "transformer": Method("Transformer+RWSE", "rwse", WALK_STEPS, TransformerProbe),
    "san": Method("SAN+LapPE", "laplacian", FREQUENCIES, SanProbe),
    "egt": Method("EGT+SVDPE", "svd", SINGULAR_VALUES, EgtProbe),
    "graphormer": Method("Graphormer+SPDPE", "spd", WALK_STEPS, GraphormerProbe),
    "grit": Method("GRIT", "rrwp", WALK_STEPS, GritProbe),
}
