"""The graphs on which entries are tried, and what is done to graphs: renumbering, other orders of edges, features."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.data import Data

from grit.graphs.schema import Features, GraphSchema

# Single nodes, isolated nodes, several components, directed edges, nodes that no edge leaves, self-loops, parallel edges.
_AWKWARD: tuple[tuple[int, tuple[tuple[int, int], ...]], ...] = (
    (1, ()),
    (1, ((0, 0),)),
    (3, ()),
    (4, ((0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2))),
    (5, ((0, 1), (1, 2), (2, 3), (3, 4), (4, 0))),
    (5, ((1, 0), (2, 0), (3, 0), (0, 4))),
    (7, ((0, 1), (1, 0), (1, 2), (2, 1), (2, 0), (0, 2), (4, 5), (5, 4))),
    (4, ((0, 1), (0, 1), (1, 0), (2, 2), (2, 3), (3, 2), (3, 2))),
    (6, tuple((a, b) for a in range(6) for b in range(6) if a != b)),
)


def awkward_graphs() -> list[Data]:
    """Nine small graphs without features, always the same: those on which code fails that has only seen molecules."""
    return [
        Data(edge_index=torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).t().contiguous(), num_nodes=n)
        for n, edges in _AWKWARD
    ]


def with_features(graphs: Sequence[Data], schema: GraphSchema) -> list[Data]:
    """The graphs with random features as the schema says, always the same, where they carry none."""
    generator = torch.Generator().manual_seed(0)
    featured = []
    for graph in graphs:
        data = graph.clone()
        if data.x is None:
            data.x = _draw(schema.node, data.num_nodes, generator)
        if data.edge_attr is None:
            data.edge_attr = _draw(schema.edge, data.num_edges, generator)
        if schema.graph_features and "graph_attr" not in data:
            data.graph_attr = torch.randn(1, schema.graph_features, generator=generator)
        featured.append(data)
    return featured


def random_order(count: int) -> Tensor:
    """(count,) a permutation, always the same; not the identity where there is another."""
    order = torch.randperm(count, generator=torch.Generator().manual_seed(count))
    return order.flip(0) if torch.equal(order, torch.arange(count)) else order


def renumbered(data: Data, order: Tensor) -> Data:
    """The same graph with node v renamed to ``order[v]``."""
    moved = data.clone()
    moved.edge_index = order[data.edge_index]
    if data.x is not None:
        moved.x = torch.empty_like(data.x)
        moved.x[order] = data.x
    return moved


def other_order_of_edges(data: Data) -> Data:
    """The same graph with its edges listed in another order."""
    order = random_order(data.num_edges)
    moved = data.clone()
    moved.edge_index = data.edge_index[:, order]
    for name in ("edge_attr", "edge_weight"):
        if name in data:
            moved[name] = data[name][order]
    return moved


def _draw(features: Features, rows: int, generator: torch.Generator) -> Tensor | None:
    if features.kind == "none":
        return None
    if features.kind == "numeric":
        return torch.randn(rows, features.width, generator=generator)
    return torch.stack([torch.randint(size, (rows,), generator=generator) for size in features.sizes], 1)
