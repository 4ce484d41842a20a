"""CRaWl (Tönshoff et al. 2021): random walks, read by a convolution that sees which nodes are the same, which joined.

    f_t = [ x at w_t ‖ e of the step to w_t ‖ w_t = w_(t-δ), δ = 1..s ‖ w_t joined to w_(t-δ), δ = 2..s ]      walk w_0, w_1, ...
    y_t = ReLU(W' ReLU(norm(conv(W f)_t)))             conv: along the walk, window s + 1, each channel for itself
    x_v <- x_v + MLP(mean of y_t over the windows with v in the middle)

Between layers a virtual node adds MLP(Σ_v x_v + itself) to all nodes. Every node begins a walk, which goes on to any neighbour
with equal chance, but back only where there is no other way. Walks ignore the directions of edges, self-loops and how often an
edge is listed; a step reads the mean of the features of the edges between the two nodes. A node without neighbours is walked
on the spot.

Shape letters: N nodes of the batch, J ordered pairs of neighbours, W walks, L nodes of each, s window, D channels.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from grit.batches.pair_batch import PairBatch
from grit.errors import GritError
from grit.graphs.packed import PackedGraphs
from grit.graphs.schema import GraphSchema
from grit.models.blocks import Draws, FewRowsNorm, OneHot, normed_mlp
from grit.models.blocks.random_walks import NeighbourLists, Walks, draw_walks, neighbours, sameness
from grit.nn.graph_features import JoinFeatures
from grit.nn.heads import readout_class, sum_per_graph
from grit.options import Dropout, Layers, Width


def check_crawl(options: Mapping[str, Any]) -> None:
    """Raise where options of `Crawl` do not go together."""
    if options["walk_length"] < options["window"]:
        raise GritError(f"walk_length must be at least window, {options['window']}: no window would fit into a walk")


class Crawl(Draws):
    """Convolutions along random walks, then a sum over nodes for graphs, and an MLP.

    Args:
        schema: Features and targets of the data; graphs or nodes.
        num_layers: Rounds; all read the same walks.
        hidden_dim: D.
        walk_length: Steps of a walk, L - 1.
        window: s.
        start_ratio: Share of the nodes that begin a walk in training, at least one in each graph; in evaluation all do.
        virtual_node: Whether there is one.
        dropout: In the MLPs of the virtual node, and before the head.
        pooling: ``sum`` or ``mean`` over the nodes of a graph; ``none`` for nodes.
    """

    def __init__(
        self,
        schema: GraphSchema,
        num_layers: Layers = 3,
        hidden_dim: Width = 147,
        walk_length: Width = 50,
        window: Width = 8,
        start_ratio: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0,
        virtual_node: bool = True,
        dropout: Dropout = 0.0,
        pooling: Literal["sum", "mean", "none"] = "sum",
    ) -> None:
        super().__init__()
        self.walk_length, self.window, self.start_ratio = walk_length, window, start_ratio
        self.node, self.edge = OneHot(schema.node), OneHot(schema.edge)
        step_dim = self.edge.width + 2 * window - 1
        self.layers = nn.ModuleList(
            CrawlLayer(
                dim=self.node.width if number == 0 else hidden_dim, step_dim=step_dim, out_dim=hidden_dim, window=window
            )
            for number in range(num_layers)
        )
        self.virtual = nn.ModuleList(_virtual_mlp(hidden_dim, dropout) for _ in range(virtual_node * (num_layers - 1)))
        self.norm = FewRowsNorm(hidden_dim)
        self.readout = readout_class(schema.level, pooling)(hidden_dim)
        self.joined = JoinFeatures(schema, hidden_dim)
        self.head = nn.Sequential(
            nn.Dropout(dropout), nn.Linear(hidden_dim, hidden_dim), nn.ReLU(), nn.Linear(hidden_dim, schema.num_outputs)
        )

    def forward(self, batch: PairBatch) -> Tensor:
        """Predict: (B, T) for graphs, (N, T) for nodes."""
        x = self.node(batch.graphs.x, batch.log_degree.dtype)
        joined = neighbours(batch.graphs)
        walks = self.walks(batch.graphs, joined)
        steps = self.steps(batch, joined, walks)
        virtual = x.new_zeros(())
        for number, layer in enumerate(self.layers):
            x = layer(x, walks.nodes, steps)
            if number < len(self.virtual):
                virtual = self.virtual[number](sum_per_graph(x, batch) + virtual)
                x = x + virtual[batch.graphs.graph_of_node]
        x = torch.relu(self.norm(x))
        predicted: Tensor = self.head(self.joined(self.readout(x, x, batch), batch))
        return predicted

    def walks(self, graphs: PackedGraphs, joined: NeighbourLists) -> Walks:
        """Draw them."""
        numbers = self.uniform(graphs, self.walk_length + 1, self.draw_seed())  # (N, L), float64
        start = torch.arange(graphs.num_nodes, device=graphs.x.device)
        if self.training and self.start_ratio < 1:
            chance, graph = numbers[:, -1], graphs.graph_of_node
            least = chance.new_ones(len(graphs)).scatter_reduce(0, graph, chance, reduce="amin")
            start = start[(chance < self.start_ratio) | (chance == least[graph])]
        return draw_walks(joined, start, numbers[start, :-1])

    def steps(self, batch: PairBatch, joined: NeighbourLists, walks: Walks) -> Tensor:
        """What every step of a walk knows besides nodes: (W, L, edge features + 2s - 1)."""
        edge = self.edge(batch.graphs.edge_attr, batch.log_degree.dtype)
        of_pair = edge.new_zeros(joined.code.numel() + 1, edge.shape[1])  # the last row: no step, no feature
        of_pair.index_add_(0, joined.pair_of_edge, edge[joined.is_joined])
        of_pair.index_add_(0, joined.reverse[joined.pair_of_edge], edge[joined.is_joined])
        count = torch.bincount(
            torch.cat([joined.pair_of_edge, joined.reverse[joined.pair_of_edge]]), minlength=len(of_pair)
        )
        of_pair = of_pair / count.clamp(min=1).unsqueeze(1).to(edge.dtype)
        taken = F.pad(walks.pairs, (1, 0), value=-1)  # (W, L); no step leads to the first node
        return torch.cat([of_pair[taken], sameness(walks.nodes, joined, self.window).to(edge.dtype)], 2)


class CrawlLayer(nn.Module):
    """One round.

    Args:
        dim: Width of x before.
        step_dim: Width of what steps know.
        out_dim: D, width of x after.
        window: s.
    """

    def __init__(self, *, dim: int, step_dim: int, out_dim: int, window: int) -> None:
        super().__init__()
        self.of_node = nn.Linear(dim, out_dim, bias=False)
        self.of_step = nn.Linear(step_dim, out_dim, bias=False)
        self.conv = nn.Conv1d(out_dim, out_dim, window + 1, groups=out_dim, bias=False)
        self.norm = FewRowsNorm(out_dim)
        self.mix = nn.Linear(out_dim, out_dim, bias=False)
        self.out = normed_mlp(out_dim, 2 * out_dim, out_dim, final=False, bias=False, last_bias=False)
        self.residual = nn.Identity() if dim == out_dim else nn.Linear(dim, out_dim, bias=False)

    def forward(self, x: Tensor, walk: Tensor, steps: Tensor) -> Tensor:
        """Update: x (N, dim), walk (W, L), steps (W, L, step_dim) -> (N, D)."""
        # A map of [x at w_t ‖ steps] is the sum of two maps, and the first need not be computed anew wherever a walk passes.
        passed = self.of_node(x).index_select(0, walk.flatten()).view(*walk.shape, -1)
        seen = passed + self.of_step(steps)  # (W, L, D)
        windows = self.conv(seen.transpose(1, 2)).transpose(1, 2)  # (W, L - s, D)
        y = torch.relu(self.mix(torch.relu(self.norm(windows.flatten(0, 1)))))  # (W (L - s), D)
        before = self.conv.kernel_size[0] // 2
        middle = walk[:, before : before + windows.shape[1]].flatten()
        count = torch.bincount(middle, minlength=x.shape[0]).clamp(min=1).unsqueeze(1)
        pooled = y.new_zeros(x.shape[0], y.shape[1]).index_add(0, middle, y) / count.to(y.dtype)
        updated: Tensor = self.residual(x) + self.out(pooled)
        return updated


def _virtual_mlp(dim: int, dropout: float) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(dim, dim, bias=False),
        FewRowsNorm(dim),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(dim, dim, bias=False),
    )
