"""SignNet (Lim et al. 2023): Laplacian eigenvectors φ(u) + φ(-u), whose sign makes no difference; then GINE, as for ZINC.

Shape letters: N nodes of the batch, E edges, R rows, one for each node i and frequency m of its graph, D channels.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from grit.batches.pair_batch import PairBatch
from grit.graphs.packed import offsets
from grit.graphs.schema import GraphSchema
from grit.models.blocks import FewRowsNorm, Grid
from grit.nn.attention.contract import check_heads
from grit.nn.graph_features import JoinFeatures
from grit.nn.heads import readout_class
from grit.nn.norm import BatchNorm
from grit.nn.stem import FEATURE_ENCODERS
from grit.options import Dropout, Layers, Width


class SignNet(nn.Module):
    """Four GIN layers φ on each eigenvector, a set transformer ρ over the eigenvectors of each node, and six layers of GINE.

        p_i = ρ({φ(u_m)_i + φ(-u_m)_i : m})            x_i = W [encode(x'_i) ‖ p_i]
        x_i <- x_i + ReLU(norm(MLP((1 + ε) x_i + Σ_j ReLU(x_j + encode(e'_ji)))))

    Then the sum over nodes for graphs, and a head. Messages go along the listed edges. The eigenvectors are those of the batch's
    encoding: all of them if there are as many as nodes. Eigenvalues are not read, as in the authors' code.

    Args:
        schema: Features and targets of the data; graphs or nodes.
        walk_steps: Eigenvectors that the batches have.
        num_layers: Of GINE.
        hidden_dim: Width.
        sign_layers: Of φ.
        num_heads: Of ρ's attention.
        attention_dropout: On its weights.
    """

    def __init__(
        self,
        schema: GraphSchema,
        walk_steps: int,
        num_layers: Layers = 6,
        hidden_dim: Width = 128,
        sign_layers: Layers = 4,
        num_heads: Width = 4,
        attention_dropout: Dropout = 0.1,
    ) -> None:
        from torch_geometric.nn import GINEConv

        super().__init__()
        check_heads(hidden_dim, num_heads)
        self.walk_steps = walk_steps
        self.phi = nn.ModuleList(SignLayer(1 if layer == 0 else hidden_dim, hidden_dim) for layer in range(sign_layers))
        self.rho = SetLayer(hidden_dim, num_heads=num_heads, attention_dropout=attention_dropout)
        self.position = nn.Sequential(nn.Linear(hidden_dim, hidden_dim, bias=False), BatchNorm(hidden_dim))
        self.node = FEATURE_ENCODERS[schema.node.kind](schema.node, hidden_dim)
        self.join = nn.Linear(2 * hidden_dim, hidden_dim)
        self.edges = nn.ModuleList(
            FEATURE_ENCODERS[schema.edge.kind](schema.edge, hidden_dim) for _ in range(num_layers)
        )
        self.convs = nn.ModuleList(GINEConv(_mlp(hidden_dim, hidden_dim), train_eps=True) for _ in range(num_layers))
        self.norms = nn.ModuleList(BatchNorm(hidden_dim) for _ in range(num_layers))
        self.readout = readout_class(schema.level, "sum" if schema.level == "graph" else "none")(hidden_dim)
        self.joined = JoinFeatures(schema, hidden_dim)
        self.head = nn.Sequential(
            nn.Linear(hidden_dim, hidden_dim, bias=False),
            FewRowsNorm(hidden_dim),
            nn.ReLU(),
            nn.Linear(hidden_dim, schema.num_outputs),
        )

    def forward(self, batch: PairBatch) -> Tensor:
        """Predict: (B, T) for graphs, (N, T) for nodes."""
        x = self.join(torch.cat([self.node(batch.graphs.x), self.positions(batch)], 1))  # (N, D)
        for encode, conv, norm in zip(self.edges, self.convs, self.norms, strict=True):
            x = x + torch.relu(norm(conv(x, batch.graphs.edge_index, encode(batch.graphs.edge_attr))))
        predicted: Tensor = self.head(self.joined(self.readout(x, x, batch), batch))
        return predicted

    def positions(self, batch: PairBatch) -> Tensor:
        """The p_i: (N, D)."""
        rows = EigenRows.of(batch, self.walk_steps)
        values = batch.node_encoding[rows.node, rows.frequency].unsqueeze(1)  # (R, 1)
        signless = self._phi(values, rows) + self._phi(-values, rows)  # (R, D)
        signless = self.rho(signless, Grid(rows.count))
        summed = signless.new_zeros(batch.num_nodes, signless.shape[1]).index_add(0, rows.node, signless)  # (N, D)
        positions: Tensor = self.position(summed)
        return positions

    def _phi(self, values: Tensor, rows: "EigenRows") -> Tensor:
        for number, layer in enumerate(self.phi):
            after = layer(values, rows)
            values = after if number == 0 else after + values
        return values


@dataclass(frozen=True, eq=False)
class EigenRows:
    """One row for each node and each frequency that its graph has.

    Attributes:
        count: (N,) frequencies of each node's graph.
        node: (R,) whose row it is.
        frequency: (R,) which frequency.
        source: The rows that messages leave: those of j for every edge j -> i.
        target: The rows at which they arrive, of i and the same frequency.
    """

    count: Tensor
    node: Tensor
    frequency: Tensor
    source: Tensor
    target: Tensor

    @classmethod
    def of(cls, batch: PairBatch, frequencies: int) -> "EigenRows":
        """The rows of a batch with that many frequencies."""
        graphs = batch.graphs
        count = graphs.nodes_per_graph[graphs.graph_of_node].clamp(max=frequencies)
        first = offsets(count)[:-1]
        source, target = graphs.edge_index
        per_edge = count[source]  # both ends are in one graph
        step = _counted(per_edge)
        return cls(
            count=count,
            node=torch.repeat_interleave(torch.arange(count.numel(), device=count.device), count),
            frequency=_counted(count),
            source=torch.repeat_interleave(first[source], per_edge) + step,
            target=torch.repeat_interleave(first[target], per_edge) + step,
        )


class SignLayer(nn.Module):
    """ReLU(norm(MLP((1 + ε) v_i + Σ_j v_j))), every frequency for itself: (R, in_dim) -> (R, out_dim).

    Args:
        in_dim: Width before; also inside the MLP.
        out_dim: Width after.
    """

    def __init__(self, in_dim: int, out_dim: int) -> None:
        super().__init__()
        self.eps = nn.Parameter(torch.zeros(1))
        self.mlp = _mlp(in_dim, out_dim)
        self.norm = BatchNorm(out_dim)

    def forward(self, values: Tensor, rows: EigenRows) -> Tensor:
        """One round."""
        own = (1 + self.eps) * values
        heard = own.index_add(0, rows.target, values[rows.source].to(own.dtype))  # which differ under autocast
        return torch.relu(self.norm(self.mlp(heard)))


class SetLayer(nn.Module):
    """A transformer layer over the rows of each node: r <- LN(r + attention(r)), then r <- LN(r + FFN(r)).

    Args:
        hidden_dim: D.
        num_heads: Of the attention, whose maps have no bias.
        attention_dropout: On its weights.
    """

    def __init__(self, hidden_dim: int, *, num_heads: int, attention_dropout: float) -> None:
        super().__init__()
        self.num_heads, self.attention_dropout = num_heads, attention_dropout
        self.maps = nn.Linear(hidden_dim, 3 * hidden_dim, bias=False)  # query, key, value
        self.out = nn.Linear(hidden_dim, hidden_dim, bias=False)
        self.ffn = nn.Sequential(nn.Linear(hidden_dim, hidden_dim), nn.ReLU(), nn.Linear(hidden_dim, hidden_dim))
        self.attention_norm, self.norm = (nn.LayerNorm(hidden_dim, eps=1e-6) for _ in range(2))

    def forward(self, rows: Tensor, grid: Grid) -> Tensor:
        """(R, D) -> (R, D)."""
        spread = grid.spread(self.maps(rows))  # (N, n, 3D)
        spread = spread.view(*spread.shape[:2], 3, self.num_heads, -1)  # (N, n, 3, H, C)
        query, key, value = spread.permute(2, 0, 3, 1, 4)  # (N, H, n, C) each
        attended = F.scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=grid.occupied[:, None, None, :],
            dropout_p=self.attention_dropout if self.training else 0.0,
        )
        rows = self.attention_norm(rows + self.out(grid.collect(attended.transpose(1, 2).flatten(2))))
        normed: Tensor = self.norm(rows + self.ffn(rows))
        return normed


def _mlp(in_dim: int, out_dim: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(in_dim, in_dim, bias=False), BatchNorm(in_dim), nn.ReLU(), nn.Linear(in_dim, out_dim, bias=False)
    )


def _counted(lengths: Tensor) -> Tensor:
    """0, 1, ... up to each length, one after another."""
    first = torch.repeat_interleave(offsets(lengths)[:-1], lengths)
    return torch.arange(first.numel(), device=lengths.device) - first
