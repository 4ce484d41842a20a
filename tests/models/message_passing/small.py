"""Graphs for layers by hand: undirected ones, and one with directed and parallel edges, a self-loop and a lonely node."""

import torch
from torch_geometric.data import Data

from tests.models.test_layers_by_hand import GRAPHS as UNDIRECTED

DIRECTED = Data(
    x=torch.tensor([[3], [1], [4], [1], [5]]),
    edge_index=torch.tensor([[0, 0, 1, 2, 2, 1], [1, 1, 2, 2, 0, 3]]),
    edge_attr=torch.tensor([1, 2, 3, 1, 2, 3]),
    y=torch.tensor([0.5]),
)
GRAPHS = [*UNDIRECTED, DIRECTED]
