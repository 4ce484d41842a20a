"""DGN (Beaini et al. 2021): aggregation along the gradient of a Laplacian eigenvector, as published for ZINC with edge features.

Shape letters: N nodes of the batch, E edges, T towers, C channels of a tower, D = T*C channels, A aggregators.
"""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import torch
import torch.nn.functional as F
from pydantic import AfterValidator
from torch import Tensor, nn

from grit.batches.pair_batch import PairBatch
from grit.errors import GritError
from grit.graphs.schema import GraphSchema
from grit.models.blocks import Output
from grit.models.blocks.directions import AGGREGATORS, Arriving
from grit.nn.norm import BatchNorm
from grit.nn.stem import FEATURE_ENCODERS
from grit.options import Dropout, Layers, Width


def _check_aggregators(names: str) -> str:
    if not names.split() or set(names.split()) - AGGREGATORS.keys():
        raise ValueError(f"a list with spaces between; there are {', '.join(AGGREGATORS)}")
    return names


class Dgn(nn.Module):
    """Four layers of `DgnLayer`, sum over nodes for graphs, and a head. Messages go along the listed edges.

    It reads the eigenvectors of the batch's encoding, the first of them as the trivial one. Which sign they have makes no
    difference. In a graph of several components the second one may be constant on each of them: then there is no direction.

    Args:
        schema: Features and targets of the data; graphs or nodes.
        walk_steps: Eigenvectors that the batches have.
        degree_histogram: Of the training set.
        num_layers: Rounds.
        hidden_dim: Width.
        out_dim: Width after the last round.
        edge_dim: Width of edges.
        num_towers: Groups of channels that pass messages apart.
        aggregators: Names of entries of `AGGREGATORS`, with spaces between.
        dropout: In every tower.
        pooling: ``sum`` or ``mean`` for graphs, ``none`` for nodes.
    """

    def __init__(
        self,
        schema: GraphSchema,
        walk_steps: int,
        degree_histogram: list[int],
        num_layers: Layers = 4,
        hidden_dim: Width = 75,
        out_dim: Width = 70,
        edge_dim: Width = 10,
        num_towers: Width = 5,
        aggregators: Annotated[str, AfterValidator(_check_aggregators)] = "mean dir1-dx max min",
        dropout: Dropout = 0.0,
        pooling: str = "sum",
    ) -> None:
        super().__init__()
        last = max([int(name[3]) for name in aggregators.split() if name.startswith("dir")], default=0)
        if walk_steps <= last:
            raise GritError(
                f"aggregators {aggregators} need {last + 1} eigenvectors, the trivial one counted: set "
                f"encoding.walk_steps={last + 1}, got {walk_steps}."
            )
        self.walk_steps = walk_steps
        counts = np.asarray(degree_histogram)
        mean_log = float(np.log1p(np.arange(counts.size)) @ counts / counts.sum()) or 1.0
        self.node = FEATURE_ENCODERS[schema.node.kind](schema.node, hidden_dim)
        self.edge = FEATURE_ENCODERS[schema.edge.kind](schema.edge, edge_dim)
        self.layers = nn.ModuleList(
            DgnLayer(
                hidden_dim,
                out_dim if layer == num_layers - 1 else hidden_dim,
                edge_dim=edge_dim,
                num_towers=num_towers,
                aggregators=tuple(aggregators.split()),
                mean_log_degree=mean_log,
                dropout=dropout,
            )
            for layer in range(num_layers)
        )
        self.output = Output(schema, out_dim, pooling=pooling)

    def forward(self, batch: PairBatch) -> Tensor:
        """Predict: (B, T) for graphs, (N, T) for nodes."""
        x, edge = self.node(batch.graphs.x), self.edge(batch.graphs.edge_attr)
        vectors = batch.node_encoding[:, : self.walk_steps]
        for layer in self.layers:
            x = layer(x, edge, vectors, batch)
        predicted: Tensor = self.output(x, batch)
        return predicted


class DgnLayer(nn.Module):
    """One round, in T towers of C channels each.

        m_ji = W_1 [h_j ‖ h_i ‖ e_ji]            w_ji = (φ_j - φ_i) / (Σ_k |φ_k - φ_i| + 1e-8)
        a_i = [h_i ‖ s ⊗ (aggregate_1, ..., aggregate_A)],     s = (1, ln(1 + d_i) / δ, δ / ln(1 + d_i))
        h_i <- h_i + LeakyReLU(W_3 norm(W_2 a_i / √n))

    with φ an eigenvector, d_i the edges that arrive at i, δ the mean of ln(1 + d) in the training set, n the nodes of the
    graph. W_1 and W_2 are a tower's own, W_3 mixes them. There is no residual where the width changes.

    Args:
        hidden_dim: D.
        out_dim: Width afterwards.
        edge_dim: Of edges.
        num_towers: T.
        aggregators: Names.
        mean_log_degree: δ.
        dropout: After the norm.
    """

    def __init__(
        self,
        hidden_dim: int,
        out_dim: int,
        *,
        edge_dim: int,
        num_towers: int,
        aggregators: tuple[str, ...],
        mean_log_degree: float,
        dropout: float,
    ) -> None:
        super().__init__()
        self.num_towers, self.mean_log_degree, self.dropout = num_towers, mean_log_degree, dropout
        self.aggregators = [AGGREGATORS[name] for name in aggregators]
        width = hidden_dim // num_towers
        fan_in = 2 * width + edge_dim
        self.ends_map = TowerMap(num_towers, width, 2 * width, fan=(fan_in, width))
        self.edge_map = nn.Linear(edge_dim, hidden_dim)
        self.node_map = TowerMap(num_towers, (3 * len(aggregators) + 1) * width, out_dim // num_towers)
        self.node_bias = nn.Parameter(torch.zeros(out_dim))
        self.norm = BatchNorm(out_dim)
        self.mixing = nn.Linear(out_dim, out_dim) if num_towers > 1 else None
        _draw(self.edge_map.weight, fan_in, width)
        nn.init.zeros_(self.edge_map.bias)
        if self.mixing is not None:
            _draw(self.mixing.weight, out_dim, out_dim)
            nn.init.zeros_(self.mixing.bias)

    def forward(self, h: Tensor, edge: Tensor, vectors: Tensor, batch: PairBatch) -> Tensor:
        """Nodes (N, D), edges (E, edge_dim), eigenvectors (N, K) -> nodes (N, out_dim)."""
        source, target = batch.graphs.edge_index
        towers = h.view(h.shape[0], self.num_towers, -1)  # (N, T, C)
        at_source, at_target = (part.flatten(1) for part in self.ends_map(towers).chunk(2, 2))  # (N, D) each
        message = at_source[source] + at_target[target] + self.edge_map(edge)  # (E, D)
        arriving = Arriving(message, batch.graphs.edge_index, h, vectors)
        found = [aggregate(arriving).view_as(towers) for aggregate in self.aggregators]  # (N, T, C) each
        together = torch.cat(found, 2)  # (N, T, A*C)
        degree = torch.bincount(target, minlength=h.shape[0]).clamp(min=1)
        log = (degree.to(h.dtype).log1p() / self.mean_log_degree).view(-1, 1, 1)  # (N, 1, 1)
        rows = (
            self.node_map(torch.cat([towers, together, together * log, together / log], 2)).flatten(1) + self.node_bias
        )
        sizes = batch.graphs.nodes_per_graph[batch.graphs.graph_of_node].unsqueeze(1).to(h.dtype)  # (N, 1)
        rows = F.dropout(self.norm(rows * sizes.rsqrt()), self.dropout, self.training)
        if self.mixing is not None:
            rows = F.leaky_relu(self.mixing(rows))
        return h + rows if rows.shape == h.shape else rows


class TowerMap(nn.Module):
    """A linear map without bias for each tower: (N, T, in_dim) -> (N, T, out_dim).

    Args:
        num_towers: T.
        in_dim: Of a tower.
        out_dim: Of a tower.
        fan: Width before and after the map that this one is a part of, for the first weights.
    """

    def __init__(self, num_towers: int, in_dim: int, out_dim: int, *, fan: tuple[int, int] | None = None) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_towers, in_dim, out_dim))
        _draw(self.weight, *(fan or (in_dim, out_dim)))

    def forward(self, x: Tensor) -> Tensor:
        """Map."""
        return torch.einsum("nti,tio->nto", x, self.weight)


def _draw(weight: Tensor, fan_in: int, fan_out: int) -> None:
    """Glorot's uniform distribution, divided by the width before the map, as the authors begin."""
    bound = (6 / (fan_in + fan_out)) ** 0.5 / fan_in
    nn.init.uniform_(weight, -bound, bound)


def check_dgn(options: Mapping[str, Any]) -> None:
    """Raise where options of `Dgn` do not go together, before anything is built."""
    for name in ("hidden_dim", "out_dim"):
        if options[name] % options["num_towers"]:
            raise GritError(f"{name} {options[name]} is not divisible by num_towers {options['num_towers']}")
