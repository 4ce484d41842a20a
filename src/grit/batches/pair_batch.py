"""`PairBatch`: what the model reads."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from grit.batches.spec import BatchSpec
from grit.encodings.rrwp import log_degree
from grit.encodings.stored_rrwp import StoredRRWP, spread, stored_rrwp
from grit.encodings.structures import STRUCTURES, Structure, compute_structure, parse_structure
from grit.errors import GritError
from grit.graphs.chunk import Array
from grit.graphs.convert import on_cpu, pack, pack_batch
from grit.graphs.packed import PackedGraphs
from grit.graphs.pairs import Pairs, choose_pairs
from grit.graphs.store import GraphStore
from grit.graphs.tensor_tree import TensorTree, has_values

if TYPE_CHECKING:
    from torch_geometric.data import Data


@dataclass(frozen=True, eq=False)
class PairBatch(TensorTree):
    """A batch of graphs, the node pairs that attention runs over, and their encodings.

    Attributes:
        graphs: Features, edges and targets of the B graphs.
        pairs: The P (query, key) pairs, row by row.
        node_encoding: (N, node_dim), for RRWP the diagonal with node_dim = walk_steps.
        pair_encoding: (P, pair_dim), for RRWP the walk from i to j with pair_dim = walk_steps.
        degree: (N,) int64, listed edges that leave each node.
        log_degree: (N,), ln(1 + d) where d is that number, or the sum of the weights of these edges if they have weights.
        structures: What else the model asked for, by name and size: ``structures["rings-18"]``.
    """

    graphs: PackedGraphs
    pairs: Pairs
    node_encoding: Tensor
    pair_encoding: Tensor
    degree: Tensor
    log_degree: Tensor
    structures: dict[str, Structure] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if torch.compiler.is_compiling():  # sizes may be symbols
            return
        rows = {
            "node_encoding": (self.node_encoding.shape[0], self.num_nodes, "nodes"),
            "pair_encoding": (self.pair_encoding.shape[0], self.num_pairs, "pairs"),
            "degree": (self.degree.shape[0], self.num_nodes, "nodes"),
            "log_degree": (self.log_degree.shape[0], self.num_nodes, "nodes"),
            "pairs.row_ptr": (self.pairs.num_nodes, self.num_nodes, "nodes"),
            "pairs.edge_pair": (self.pairs.edge_pair.shape[0], self.graphs.num_edges, "edges"),
        }
        for name, (got, wanted, what) in rows.items():
            if got != wanted:
                raise GritError(f"{name} has {got} rows but the batch has {wanted} {what}.")
        if has_values(self.node_encoding):
            graph = self.graphs.graph_of_node
            if not torch.equal(graph[self.pairs.query], graph[self.pairs.key]):
                raise GritError("a pair joins nodes of two different graphs.")

    @classmethod
    def from_graphs(cls, graphs: PackedGraphs, spec: BatchSpec) -> "PairBatch":
        """Choose pairs and compute encodings for packed graphs."""
        return _assemble(graphs, spec, stored=None)

    @classmethod
    def from_store(
        cls, store: GraphStore, indices: Iterable[int] | Array | Tensor, spec: BatchSpec, split: str | None = None
    ) -> "PairBatch":
        """The graphs of a store with these numbers, in this order; ``split`` as in `GraphStore.gather`."""
        return cls.from_graphs(store.gather(indices, split), spec)

    @classmethod
    def from_data_list(
        cls,
        data_list: Sequence["Data"],
        walk_steps: int = 21,
        *,
        encoding: str = "rrwp",
        pairs: str = "all",
        dtype: torch.dtype = torch.float32,
        structures: Sequence[str] = (),
    ) -> "PairBatch":
        """A batch from PyG graphs; see `BatchSpec` for the arguments and `grit.graphs.convert.pack` for what is read.

        Graphs that went through `AddRRWP` with the same walk_steps keep the values that it stored. If these are not the values
        of the graph as it is now, for example after ``data.subgraph(...)``, that is an error.
        """
        spec = BatchSpec(walk_steps, encoding, pairs, dtype, tuple(structures))
        here, device = on_cpu(data_list)
        return _with_stored_values(here, pack(here), spec).to(device)

    @classmethod
    def from_pyg(
        cls,
        batch: "Data",
        walk_steps: int = 21,
        *,
        encoding: str = "rrwp",
        pairs: str = "all",
        dtype: torch.dtype = torch.float32,
        structures: Sequence[str] = (),
    ) -> "PairBatch":
        """A batch from what PyG's ``DataLoader`` yields: a ``Batch``, or a ``Data`` with a ``batch`` vector; or one graph."""
        spec = BatchSpec(walk_steps, encoding, pairs, dtype, tuple(structures))
        (here,), device = on_cpu([batch])
        return _with_stored_values([here], pack_batch(here), spec).to(device)

    @property
    def x(self) -> Tensor:
        """Node features, (N, F)."""
        return self.graphs.x

    @property
    def y(self) -> Tensor | None:
        """Targets, (B, T), (N, T) or (Q, T)."""
        return self.graphs.y

    @property
    def row_ptr(self) -> Tensor:
        """(N + 1,): where each query's row of pairs begins."""
        return self.pairs.row_ptr

    @property
    def num_graphs(self) -> int:
        """B."""
        return self.graphs.num_graphs

    @property
    def num_nodes(self) -> int:
        """N."""
        return self.graphs.num_nodes

    @property
    def num_pairs(self) -> int:
        """P."""
        return self.pairs.num_pairs

    def __len__(self) -> int:
        return self.num_graphs

    def __repr__(self) -> str:
        encoded = f"encodings {self.node_encoding.shape[1]}/{self.pair_encoding.shape[1]} wide"
        return (
            f"PairBatch({self.num_graphs:,} graphs, {self.num_nodes:,} nodes, {self.graphs.num_edges:,} edges, "
            f"{self.num_pairs:,} pairs, {encoded}, {str(self.pair_encoding.dtype).removeprefix('torch.')} "
            f"on {self.pair_encoding.device})"
        )


def _with_stored_values(data_list: Sequence["Data"], graphs: PackedGraphs, spec: BatchSpec) -> PairBatch:
    stored = stored_rrwp(data_list, graphs, spec.walk_steps) if spec.encoding == "rrwp" else None
    return _assemble(graphs, spec, stored)


def _assemble(graphs: PackedGraphs, spec: BatchSpec, stored: StoredRRWP | None) -> PairBatch:
    dtype = spec.dtype
    pairs = choose_pairs(graphs, spec.pairs, bytes_per_pair=spec.bytes_per_pair)
    if stored is None:
        encoded = spec.kind.compute(graphs, pairs, spec.walk_steps, dtype)
    else:
        encoded = spread(stored, pairs, dtype)
    return PairBatch(
        graphs=graphs.to(dtype),
        pairs=pairs,
        node_encoding=encoded.node,
        pair_encoding=encoded.pair,
        degree=graphs.degree(),
        log_degree=log_degree(graphs.weighted_degree(dtype)) if stored is None else stored.log_degree.to(dtype),
        structures={name: _structure(graphs, name, dtype) for name in spec.structures},
    )


def _structure(graphs: PackedGraphs, text: str, dtype: torch.dtype) -> Structure:
    name, size = parse_structure(text)
    return compute_structure(graphs, name, STRUCTURES[name], size, dtype)
