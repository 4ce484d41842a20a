"""Hypothesis strategies: graphs of every awkward kind."""

import torch
from hypothesis import strategies as st
from torch_geometric.data import Data


@st.composite
def graphs(draw, max_nodes: int = 8, undirected: bool | None = None, simple: bool = False) -> Data:
    """One graph without features: single nodes, isolated nodes, several components; directed edges, self-loops and
    parallel edges unless ``simple``."""
    n = draw(st.integers(1, max_nodes))
    node = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(node, node), max_size=3 * n))
    if simple:
        edges = [(u, v) for u, v in edges if u != v]
    if undirected or (undirected is None and draw(st.booleans())):
        edges = edges + [(v, u) for u, v in edges if u != v]
    if simple:
        edges = sorted(set(edges))
    return Data(edge_index=torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).t().contiguous(), num_nodes=n)


@st.composite
def weighted_graphs(draw, **options) -> Data:
    """The same with edge weights, zeros among them."""
    data = draw(graphs(**options))
    weight = st.one_of(st.just(0.0), st.floats(1e-3, 1e3))
    data.edge_weight = torch.tensor([draw(weight) for _ in range(data.num_edges)], dtype=torch.float64)
    return data


@st.composite
def featured_graphs(draw, node_types: int = 5, edge_types: int = 3, **options) -> Data:
    """The same with categorical node and edge features."""
    data = draw(graphs(**options))
    seed = draw(st.integers(0, 2**16))
    generator = torch.Generator().manual_seed(seed)
    data.x = torch.randint(node_types, (data.num_nodes, 1), generator=generator)
    data.edge_attr = torch.randint(edge_types, (data.num_edges,), generator=generator)
    return data


def permuted(data: Data, permutation: torch.Tensor) -> Data:
    """The same graph with node v renamed to permutation[v]."""
    out = Data(edge_index=permutation[data.edge_index], num_nodes=data.num_nodes)
    if data.x is not None:
        out.x = torch.empty_like(data.x)
        out.x[permutation] = data.x
    if data.edge_attr is not None:
        out.edge_attr = data.edge_attr
    return out
