"""What Graphormer and its descendants read of pairs: distances, and the edges on the way.

Shape letters: P pairs, E edges, B graphs, n places (token and nodes), H heads.
"""

import torch
from torch import Tensor, nn

from grit.batches.pair_batch import PairBatch
from grit.graphs.schema import Features
from grit.models.blocks.grid import Grid
from grit.nn.stem import FEATURE_ENCODERS


def distances(batch: PairBatch, walk_steps: int) -> Tensor:
    """(P,) int64: the shortest-path distance of each pair, ``walk_steps`` if it is that or more, or there is no way."""
    one_hot = batch.pair_encoding[:, :walk_steps]
    return torch.where(one_hot.any(1), one_hot.argmax(1), walk_steps)


class DistanceTable(nn.Module):
    """A number for every head and distance, and one for pairs with the token: (P,) -> (B, H, n, n).

    Args:
        num_heads: H.
        num_distances: 0, 1, ...; the others have 0.
    """

    def __init__(self, num_heads: int, num_distances: int) -> None:
        super().__init__()
        self.table, self.token = nn.Embedding(num_distances, num_heads), nn.Embedding(1, num_heads)

    def forward(self, distance: Tensor, batch: PairBatch, grid: Grid) -> Tensor:
        """Look up."""
        near = distance < self.table.num_embeddings
        bias = grid.add_pairs(self.table(distance[near]), batch.pairs.query[near], batch.pairs.key[near])
        first = torch.arange(grid.size, device=distance.device) == 0
        return bias + (first | first.unsqueeze(1)).to(bias.dtype) * self.token.weight.view(-1, 1, 1)


class PathBias(nn.Module):
    """c_ij = mean over the steps t of the way from i to j of W_t e_t, (B, H, n, n), with e_t an encoding of width H of its edge.

    Where several ways are equally short, e_t is the mean over all of them. W_t is (H, H).

    Args:
        edge: What an edge carries. Of several columns the mean is taken, as the authors do.
        num_heads: H.
        path_steps: Steps of the way that are looked at, the first ones.
    """

    def __init__(self, edge: Features, num_heads: int, path_steps: int) -> None:
        super().__init__()
        self.name = f"paths-{path_steps}"
        self.columns = edge.width if edge.kind == "columns" else 1
        self.edge = FEATURE_ENCODERS[edge.kind](edge, num_heads)
        self.steps = nn.Embedding(path_steps, num_heads**2)

    def forward(self, batch: PairBatch, grid: Grid) -> Tensor:
        """Add up."""
        first, last, edge, step = batch.structures[self.name].parts["edge"]  # (M,) each
        share = batch.structures[self.name].parts["share"].unsqueeze(1)  # (M, 1)
        encoded = self.edge(batch.graphs.edge_attr) / self.columns  # (E, H)
        heads = encoded.shape[1]
        mapped = encoded @ self.steps.weight.view(-1, heads, heads)  # (steps, E, H)
        each = mapped.flatten(0, 1).index_select(0, step * batch.graphs.num_edges + edge)  # (M, H)
        total = grid.add_pairs(torch.cat([each, torch.ones_like(share)], 1) * share, first, last)
        # The shares of every step add up to 1, so that their sum is the number of steps.
        return total[:, :-1] / total[:, -1:].clamp(min=1.0)
