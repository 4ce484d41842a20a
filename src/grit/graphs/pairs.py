"""The ordered node pairs that attention runs over, packed row by row.

Graph ``g`` with ``n_g`` nodes owns ``n_g ** 2`` consecutive pairs by default, row-major in (query i, key j), and
``row_ptr`` marks where each query's row begins. Sparse attention is simply fewer pairs. See `grit.graphs` for the
orientation of queries, keys and edges.

Shape letters: N nodes of the batch, P pairs, E edges.
"""

import re
from dataclasses import dataclass

import torch
from torch import Tensor

from grit.errors import GritError
from grit.graphs.packed import PackedGraphs, offsets
from grit.graphs.tensor_tree import TensorTree, has_values
from grit.memory import check_fits


@dataclass(frozen=True, eq=False)
class Pairs(TensorTree):
    """Which key nodes each query node attends to.

    Attributes:
        query: (P,) int64, node i of each pair, not decreasing.
        key: (P,) int64, node j of each pair, increasing within a row.
        row_ptr: (N + 1,) int64; the pairs of query i are ``row_ptr[i]`` to ``row_ptr[i + 1]``.
        edge_pair: (E,) int64; the pair (i, j) that receives the feature of each observed edge j -> i.
    """

    query: Tensor
    key: Tensor
    row_ptr: Tensor
    edge_pair: Tensor

    def __post_init__(self) -> None:
        if not has_values(self.query):
            return
        for name in ("query", "key", "row_ptr", "edge_pair"):
            if getattr(self, name).dtype != torch.int64:
                raise GritError(f"{name} must be int64, got {getattr(self, name).dtype}. Use .long().")
        if self.query.shape != self.key.shape or self.query.dim() != 1:
            raise GritError(
                f"query and key must be vectors of one length, got {tuple(self.query.shape)} and "
                f"{tuple(self.key.shape)}."
            )
        if int(self.row_ptr[0]) != 0 or int(self.row_ptr[-1]) != self.num_pairs:
            raise GritError(f"row_ptr must go from 0 to {self.num_pairs}, the number of pairs.")
        length = self.row_ptr.diff()
        if bool((length < 1).any()):
            i = int((length < 1).nonzero()[0])
            raise GritError(f"node {i} has no pair to attend to; every node needs at least the pair with itself.")
        nodes = torch.arange(self.num_nodes)
        if not torch.equal(self.query, torch.repeat_interleave(nodes, length, output_size=self.num_pairs)):
            raise GritError("query does not follow row_ptr: the pairs of a node must be consecutive, nodes in order.")
        if int(self.key.min()) < 0 or int(self.key.max()) >= self.num_nodes:
            raise GritError(f"key refers to nodes outside 0..{self.num_nodes - 1}.")
        if bool(((self.query * self.num_nodes + self.key).diff() <= 0).any()):
            raise GritError("key must increase within each row, without repetition.")
        if self.edge_pair.numel() and not 0 <= int(self.edge_pair.min()) <= int(self.edge_pair.max()) < self.num_pairs:
            raise GritError(f"edge_pair refers to pairs outside 0..{self.num_pairs - 1}.")

    @classmethod
    def from_index(cls, query: Tensor, key: Tensor, num_nodes: int) -> "Pairs":
        """Pairs from any list of (query, key), each given once, in any order; no observed edges.

        This is how to use your own sparse attention: ``Pairs.from_index(edge_index[1], edge_index[0], n)``.
        """
        if query.shape != key.shape or query.dim() != 1:
            raise GritError(
                f"query and key must be vectors of one length, got {tuple(query.shape)} and {tuple(key.shape)}."
            )
        if num_nodes < 1:
            raise GritError(f"num_nodes must be at least 1, got {num_nodes}.")
        query, key = query.long(), key.long()
        for name, index in (("query", query), ("key", key)):
            if index.numel() and (int(index.min()) < 0 or int(index.max()) >= num_nodes):
                raise GritError(f"{name} refers to nodes outside 0..{num_nodes - 1}.")
        code, order = torch.sort(query * num_nodes + key)
        if bool((code.diff() == 0).any()):
            raise GritError("the same (query, key) pair is listed twice.")
        row_ptr = offsets(torch.bincount(query, minlength=num_nodes))
        return cls(query=query[order], key=key[order], row_ptr=row_ptr, edge_pair=query.new_empty(0))

    @property
    def num_pairs(self) -> int:
        """P."""
        return self.query.numel()

    @property
    def num_nodes(self) -> int:
        """N."""
        return self.row_ptr.numel() - 1

    def find(self, query: Tensor, key: Tensor) -> Tensor:
        """Position of each (query, key) among the pairs, -1 where it is not one of them."""
        code = self.query * self.num_nodes + self.key  # increasing, because pairs are row-major
        wanted = query * self.num_nodes + key
        at = torch.searchsorted(code, wanted).clamp(max=self.num_pairs - 1)
        return torch.where(code[at] == wanted, at, -1)


def choose_pairs(graphs: PackedGraphs, kind: str = "all", *, bytes_per_pair: int = 0) -> Pairs:
    """The pairs of each graph that attention runs over.

    Pairs that do not fit in memory are an error before they are listed.

    Args:
        graphs: The packed graphs.
        kind: ``all``: every ordered pair of a graph's nodes. ``edges``: the observed edges and every node with
            itself, the paper's sparse attention. ``khop-2`` (any number): node i attends to every j from which at
            most that many observed edges lead to i; ``khop-1`` is ``edges``.
        bytes_per_pair: What the caller will store for each pair, such as its encoding; the check of memory counts it.
    """
    if kind == "all":
        return _all_pairs(graphs, bytes_per_pair)
    return _pairs_within(graphs, _hops(kind), bytes_per_pair)


def check_pairs_kind(kind: str) -> str:
    """``kind`` itself if `choose_pairs` knows it; an error otherwise."""
    if kind != "all":
        _hops(kind)
    return kind


def _hops(kind: str) -> int:
    if kind == "edges":
        return 1
    match = re.fullmatch(r"khop-([1-9]\d*)", str(kind))
    if match is None:
        raise GritError(f"pairs must be 'all', 'edges' or 'khop-N' such as 'khop-2', got {kind!r}.")
    return int(match.group(1))


def _all_pairs(graphs: PackedGraphs, bytes_per_pair: int) -> Pairs:
    device = graphs.x.device
    n = graphs.nodes_per_graph
    num_pairs = int((n * n).sum())
    _check_list_fits(num_pairs, bytes_per_pair, device, "list of all pairs")
    row_length = torch.repeat_interleave(n, n, output_size=graphs.num_nodes)  # (N,)
    first_node = torch.repeat_interleave(graphs.node_ptr[:-1], n, output_size=graphs.num_nodes)  # (N,)
    row_ptr = offsets(row_length)  # (N + 1,)
    nodes = torch.arange(graphs.num_nodes, device=device)
    query = torch.repeat_interleave(nodes, row_length, output_size=num_pairs)  # (P,)
    key = torch.arange(num_pairs, device=device) + (first_node - row_ptr[:-1])[query]  # (P,)
    source, target = graphs.edge_index
    edge_pair = row_ptr[target] + source - first_node[target]  # (E,)
    return Pairs(query=query, key=key, row_ptr=row_ptr, edge_pair=edge_pair)


def _pairs_within(graphs: PackedGraphs, hops: int, bytes_per_pair: int) -> Pairs:
    device, num_nodes, (source, target) = graphs.x.device, graphs.num_nodes, graphs.edge_index
    by_target = torch.argsort(target)
    into = source[by_target]  # sources of the edges into node 0, node 1, ...
    indegree = torch.bincount(target, minlength=num_nodes)
    into_ptr = offsets(indegree)
    nodes = torch.arange(num_nodes, device=device)
    code = nodes * (num_nodes + 1)  # (i, i) as i * N + i
    for _ in range(min(hops, num_nodes - 1)):  # no shortest path is longer
        query, key = code // num_nodes, code % num_nodes
        count = indegree[key]
        num_steps = int(count.sum())
        check_fits(num_steps, 6 * 8, device, "the list of pairs")  # six vectors at a time below
        step = torch.arange(num_steps, device=device)
        step = step - torch.repeat_interleave(offsets(count)[:-1], count)  # 0.. within each (query, key)
        reached = into[torch.repeat_interleave(into_ptr[key], count) + step]
        code = torch.unique(torch.cat([code, torch.repeat_interleave(query, count) * num_nodes + reached]))
    _check_list_fits(code.numel(), bytes_per_pair, device, "list of pairs")
    query, key = code // num_nodes, code % num_nodes
    row_ptr = offsets(torch.bincount(query, minlength=num_nodes))
    edge_pair = torch.searchsorted(code, target * num_nodes + source)
    return Pairs(query=query, key=key, row_ptr=row_ptr, edge_pair=edge_pair)


def _check_list_fits(num_pairs: int, bytes_per_pair: int, device: torch.device, name: str) -> None:
    listing = 4 * 8  # query and key, and as much again to build and check them
    what = f"the encoded {name}" if bytes_per_pair else f"the {name}"
    check_fits(num_pairs, listing + bytes_per_pair, device, what)
