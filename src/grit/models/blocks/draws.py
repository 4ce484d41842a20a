"""Random numbers of models that need them in evaluation, too."""

import numpy as np
import torch
from torch import Tensor, nn

from grit.graphs.chunk import Array
from grit.graphs.packed import PackedGraphs


class Draws(nn.Module):
    """Base of models whose predictions depend on random numbers: other ones at every training step, fixed ones in evaluation.

    In evaluation they belong to a node's number within its graph, so that a graph is predicted alike in every batch.

    Attributes:
        eval_seed: Of the numbers in evaluation. Other seeds give other draws from the same distribution.
    """

    eval_seed: int = 0

    def draw_seed(self) -> int:
        """The seed for this forward pass."""
        return int(torch.randint(2**31, ())) if self.training else self.eval_seed

    def uniform(self, graphs: PackedGraphs, width: int, seed: int) -> Tensor:
        """(N, width) numbers in [0, 1), float64; in evaluation the same for the first, second, ... node of every graph."""
        return self._by_place(graphs, np.random.default_rng(seed).random((self._rows(graphs), width)))

    def normal(self, graphs: PackedGraphs, width: int, seed: int) -> Tensor:
        """(N, width) numbers of the standard normal distribution, likewise."""
        return self._by_place(graphs, np.random.default_rng(seed).standard_normal((self._rows(graphs), width)))

    def _rows(self, graphs: PackedGraphs) -> int:
        return graphs.num_nodes if self.training else int(graphs.nodes_per_graph.max())

    def _by_place(self, graphs: PackedGraphs, table: Array) -> Tensor:
        device = graphs.x.device
        numbers = torch.from_numpy(table).to(device)
        if self.training:
            return numbers
        return numbers[torch.arange(graphs.num_nodes, device=device) - graphs.node_ptr[graphs.graph_of_node]]
