"""PNA (Corso et al. 2020): four aggregations of the neighbours times three degree scalers, in towers.

Messages follow the direction of the edges, and degrees are in-degrees. Self-loops count as edges, parallel edges count each.

Shape letters: N nodes of the batch, E edges, B graphs, D channels, H towers, C = D/H channels per tower, F edge channels.
"""

from collections.abc import Mapping, Sequence
from math import log
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from grit.batches.pair_batch import PairBatch
from grit.errors import GritError
from grit.graphs.schema import GraphSchema
from grit.models.blocks import Output, Pooling, count_at, max_at, mean_at, min_at
from grit.nn.norm import BatchNorm
from grit.nn.stem import FEATURE_ENCODERS
from grit.options import Dropout, Layers, Width

_COMBINATIONS = 12  # 4 aggregations, 3 scalers
_EPSILON = 1e-5  # under the root of the deviation, as the authors have it


def mean_log_degree(degree_histogram: Sequence[int]) -> float:
    """δ, the mean of ln(d + 1) over the nodes of the training set; 1 where no node has an edge, and nothing is scaled."""
    total = sum(count * log(d + 1) for d, count in enumerate(degree_histogram))
    return total / sum(degree_histogram) if total else 1.0


def principal_aggregation(messages: Tensor, target: Tensor, num_nodes: int, delta: float) -> Tensor:
    """[mean ‖ max ‖ min ‖ std] of the messages at each node, times 1, ln(d + 1)/δ and δ/ln(d + 1): (E, H, C) -> (N, H, 12C).

    A node without messages gets zeros.

    Args:
        messages: (E, H, C).
        target: (E,), the node that each message reaches.
        num_nodes: N.
        delta: δ of `mean_log_degree`.
    """
    mean, largest, smallest = (at(messages, target, num_nodes) for at in (mean_at, max_at, min_at))
    mean_square = mean_at(messages.square(), target, num_nodes)
    count = count_at(target, num_nodes, messages.dtype).view(-1, 1, 1)  # (N, 1, 1)
    deviation = (torch.relu(mean_square - mean.square()) + _EPSILON).sqrt() * (count > 0)
    found = torch.cat([mean, largest, smallest, deviation], -1)  # (N, H, 4C)
    scale = torch.log(count.clamp(min=1) + 1) / delta
    return torch.cat([found, found * scale, found / scale], -1)  # (N, H, 12C)


class TowerLinear(nn.Module):
    """A linear map per tower in one product, (R, H, A) -> (R, H, B). Weights begin small, as the authors' do."""

    def __init__(self, num_towers: int, input_dim: int, output_dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_towers, input_dim, output_dim))
        self.bias = nn.Parameter(torch.zeros(num_towers, output_dim))
        for tower in self.weight.data:
            nn.init.xavier_uniform_(tower, gain=1 / input_dim)

    def forward(self, rows: Tensor) -> Tensor:
        """Map: (R, H, A) -> (R, H, B)."""
        return torch.einsum("rha,hab->rhb", rows, self.weight) + self.bias


class PnaLayer(nn.Module):
    """x <- x + LeakyReLU(M BatchNorm(s_i ‖_h y_i^h) + m), with y_i^h = V^h [x_i^h ‖ aggregation_{j -> i}(m_ji^h)] + v^h.

    The messages are m_ji^h = W^h [x_j^h ‖ x_i^h ‖ e_ji] + w^h, where x^h are the channels of tower h. The factor s_i is 1/√n in
    a graph of n nodes. Without x + where input and output differ in width.

    Args:
        input_dim: D.
        output_dim: D of the result.
        edge_dim: F.
        num_towers: H, a divisor of both.
        delta: δ of `mean_log_degree`.
        dropout: Before M.
    """

    def __init__(
        self, *, input_dim: int, output_dim: int, edge_dim: int, num_towers: int, delta: float, dropout: float
    ) -> None:
        super().__init__()
        width = input_dim // num_towers
        self.before = TowerLinear(num_towers, 2 * width + edge_dim, width)
        self.after = TowerLinear(num_towers, (1 + _COMBINATIONS) * width, output_dim // num_towers)
        self.norm = BatchNorm(output_dim)
        self.mix = TowerLinear(1, output_dim, output_dim)
        self.num_towers, self.delta, self.dropout = num_towers, delta, dropout
        self.is_residual = input_dim == output_dim

    def forward(self, x: Tensor, edge_index: Tensor, edge: Tensor, scale: Tensor) -> Tensor:
        """One round: x (N, D), edge (E, F), scale (N, 1) -> (N, output_dim)."""
        source, target = edge_index
        towers = x.view(x.shape[0], self.num_towers, -1)  # (N, H, C)
        bonds = edge.unsqueeze(1).expand(-1, self.num_towers, -1)  # (E, H, F)
        messages = self.before(torch.cat([towers[source], towers[target], bonds], -1))  # (E, H, C)
        found = principal_aggregation(messages, target, x.shape[0], self.delta)  # (N, H, 12C)
        y = self.after(torch.cat([towers, found], -1)).flatten(1)  # (N, output_dim)
        y = F.dropout(self.norm(y * scale), self.dropout, self.training)
        y = F.leaky_relu(self.mix(y.unsqueeze(1)).squeeze(1))
        return x + y if self.is_residual else y


class Pna(nn.Module):
    """Layers of `PnaLayer`, the last one narrower, then the sum over nodes for graphs, and a head.

    Args:
        schema: Features and targets of the data; graphs or nodes.
        degree_histogram: Of the training set, see `STATISTICS`.
        num_layers: Rounds of messages.
        hidden_dim: Width.
        output_dim: Width after the last round.
        edge_dim: Width of the embedded edge features.
        num_towers: A divisor of both widths.
        dropout: On the normalised result of each round.
        pooling: ``sum`` or ``mean`` for graphs, ``none`` for nodes.
    """

    def __init__(
        self,
        schema: GraphSchema,
        degree_histogram: list[int],
        num_layers: Layers = 4,
        hidden_dim: Width = 70,
        output_dim: Width = 60,
        edge_dim: Width = 50,
        num_towers: Width = 5,
        dropout: Dropout = 0.0,
        pooling: Pooling = "sum",
    ) -> None:
        super().__init__()
        self.node = FEATURE_ENCODERS[schema.node.kind](schema.node, hidden_dim)
        self.edge = FEATURE_ENCODERS[schema.edge.kind](schema.edge, edge_dim)
        self.layers = nn.ModuleList(
            PnaLayer(
                input_dim=hidden_dim,
                output_dim=width,
                edge_dim=edge_dim,
                num_towers=num_towers,
                delta=mean_log_degree(degree_histogram),
                dropout=dropout,
            )
            for width in [hidden_dim] * (num_layers - 1) + [output_dim]
        )
        self.output = Output(schema, output_dim, pooling=pooling)

    def forward(self, batch: PairBatch) -> Tensor:
        """Predict: (B, T) for graphs, (N, T) for nodes."""
        graphs = batch.graphs
        x, edge = self.node(graphs.x), self.edge(graphs.edge_attr)  # (N, D), (E, F)
        scale = graphs.nodes_per_graph.to(x.dtype).rsqrt()[graphs.graph_of_node].unsqueeze(1)  # (N, 1)
        for layer in self.layers:
            x = layer(x, graphs.edge_index, edge, scale)
        predicted: Tensor = self.output(x, batch)
        return predicted


def check_pna(options: Mapping[str, Any]) -> None:
    """Raise where options of `Pna` do not go together, before anything is built."""
    towers = options["num_towers"]
    for name in ("hidden_dim", "output_dim"):
        if options[name] % towers:
            raise GritError(f"num_towers {towers} must divide {name} {options[name]}")
