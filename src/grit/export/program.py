"""The program inside an exported file: plain tensors in, predictions out.

Pairs, encodings and degrees are computed here from the edges alone, with the rules of `grit.graphs.pairs` and
`grit.encodings.rrwp`, in operations that PyTorch's exporter and ONNX know. Graphs are padded to the largest for this, (B, n, n);
the model itself runs over packed pairs as always.

Shape letters: N nodes of the batch, P pairs, E edges, B graphs, n nodes of the largest, K walk steps, F features.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from grit.batches.pair_batch import PairBatch
from grit.batches.spec import BatchSpec
from grit.encodings.rrwp import log_degree
from grit.errors import GritError
from grit.graphs.packed import PackedGraphs
from grit.graphs.pairs import Pairs
from grit.learning.task import Task
from grit.models.grit import Grit
from grit.recipe.config import Recipe

EXPORTABLE_ENCODINGS = ("rrwp", "rwse", "none")
LEVELS = ("graph", "node")

Cells = tuple[Tensor, Tensor, Tensor]  # of (B, n, n): graph, i, j


@dataclass(frozen=True, eq=False)
class _NumberedGraphs(PackedGraphs):
    """`PackedGraphs` that keeps which graph a node belongs to, since ONNX has no operation to compute it."""

    graph_numbers: Tensor | None = None

    @property
    def graph_of_node(self) -> Tensor:
        """(N,) int64, as given."""
        assert self.graph_numbers is not None
        return self.graph_numbers


class NodeLayout(NamedTuple):
    """Where nodes stand in (B, n).

    Attributes:
        graph: (N,) the graph of each node.
        number: (N,) its number within the graph.
        sizes: (B,) nodes of each graph.
        width: n.
    """

    graph: Tensor
    number: Tensor
    sizes: Tensor
    width: int


def node_layout(graph_of_node: Tensor) -> NodeLayout:
    """Where the nodes stand, from the graph of each."""
    sizes = _count(graph_of_node, _size(graph_of_node.max() + 1))  # (B,)
    number = torch.arange(graph_of_node.shape[0]) - _offsets(sizes)[graph_of_node]  # (N,)
    return NodeLayout(graph_of_node, number, sizes, _size(sizes.max()))


def pair_batch(
    layout: NodeLayout,
    edge_index: Tensor,
    x: Tensor | None,
    edge_attr: Tensor | None,
    spec: BatchSpec,
) -> PairBatch:
    """What `PairBatch.from_graphs` gives, in operations that can be exported."""
    num_nodes, num_edges = layout.graph.shape[0], edge_index.shape[1]
    source = edge_index[0]
    degree = _count(source, num_nodes)  # (N,)
    dtype = spec.dtype
    step = _walk_matrix(layout, edge_index, degree, dtype)  # (B, n, n)
    chosen, cells = _pairs(layout, edge_index, step > 0, spec.pairs)
    node = torch.zeros(num_nodes, 0, dtype=dtype)
    pair = torch.zeros(chosen.num_pairs, 0, dtype=dtype)
    diagonal = (layout.graph, layout.number, layout.number)
    if spec.encoding == "rrwp":
        node, pair = _powers_at([diagonal, cells], step, spec.walk_steps)  # (N, K), (P, K)
    elif spec.encoding == "rwse":
        (node,) = _powers_at([diagonal], step, spec.walk_steps)  # (N, K)
    return PairBatch(
        graphs=_NumberedGraphs(
            x=torch.zeros(num_nodes, 0, dtype=dtype) if x is None else x,
            edge_index=edge_index,
            edge_attr=torch.zeros(num_edges, 0, dtype=dtype) if edge_attr is None else edge_attr,
            node_ptr=_offsets(layout.sizes),
            edge_ptr=_offsets(_count(layout.graph[source], layout.sizes.shape[0])),
            graph_numbers=layout.graph,
        ),
        pairs=chosen,
        node_encoding=node,
        pair_encoding=pair,
        degree=degree,
        log_degree=log_degree(degree.to(dtype)),
    )


def broken_rules(layout: NodeLayout, edge_index: Tensor, x: Tensor | None, edge_attr: Tensor | None) -> Tensor:
    """How many entries break the rules of `TensorProgram.forward`. A program in a file cannot raise, but it can give NaN."""
    graph, source, target = layout.graph, *edge_index
    outside = (layout.number < 0) | (layout.number >= layout.sizes[graph])  # nodes of a graph are not side by side
    broken = outside.sum() + (layout.sizes == 0).sum()
    broken = broken + (edge_index < 0).sum() + (graph[source] != graph[target]).sum()
    for values in (x, edge_attr):
        if values is not None:
            broken = broken + (~torch.isfinite(values) if values.is_floating_point() else values < 0).sum()
    if x is not None:  # a single row would do for all nodes; counted, because shapes are known to agree while tracing
        broken = broken + (torch.ones_like(x[:, 0]).sum() != layout.sizes.sum()).sum()
    return broken


def _walk_matrix(layout: NodeLayout, edge_index: Tensor, degree: Tensor, dtype: torch.dtype) -> Tensor:
    """M, (B, n, n): 1 / degree where there is an edge, however often it is listed."""
    source, target = edge_index
    empty = torch.zeros(layout.sizes.shape[0], layout.width, layout.width, dtype=dtype)
    cell = (layout.graph[source], layout.number[source], layout.number[target])
    return empty.index_put(cell, 1.0 / degree[source].to(dtype))


def _powers_at(places: list[Cells], step: Tensor, walk_steps: int) -> list[Tensor]:
    """I, M, ..., M^(K-1) at some cells of (B, n, n): (R, K) for each list of R cells."""
    walk = torch.eye(step.shape[1], dtype=step.dtype).expand_as(step)
    read: list[list[Tensor]] = [[walk[place]] for place in places]
    for _ in range(walk_steps - 1):
        walk = step @ walk
        for values, place in zip(read, places, strict=True):
            values.append(walk[place])
    return [torch.stack(values, 1) for values in read]


def _pairs(layout: NodeLayout, edge_index: Tensor, is_edge: Tensor, kind: str) -> tuple[Pairs, Cells]:
    """The pairs, and their cells."""
    is_node = torch.arange(layout.width) < layout.sizes.unsqueeze(1)  # (B, n)
    mask = is_node.unsqueeze(2) & is_node.unsqueeze(1)  # (B, n, n)
    if kind != "all":
        mask = mask & _within(is_edge, _hops(kind)).transpose(1, 2)  # i attends to j if a way leads from j to i
    graph, i, j = mask.nonzero().unbind(1)  # (P,) each, row-major
    _check(graph.shape[0] >= 1)  # which the exporter cannot know
    first = _offsets(layout.sizes)[graph]  # (P,)
    numbers = torch.arange(graph.shape[0])  # (P,)
    place = torch.zeros_like(mask, dtype=torch.int64).index_put((graph, i, j), numbers)  # (B, n, n)
    source, target = edge_index
    chosen = Pairs(
        query=first + i,
        key=first + j,
        row_ptr=_offsets(mask.sum(2)[layout.graph, layout.number]),
        edge_pair=place[layout.graph[target], layout.number[target], layout.number[source]],
    )
    return chosen, (graph, i, j)


def _hops(kind: str) -> int:
    return 1 if kind == "edges" else int(kind.removeprefix("khop-"))


def _within(is_edge: Tensor, hops: int) -> Tensor:
    """Whether at most ``hops`` edges lead from i to j, (B, n, n)."""
    one_step = (is_edge | torch.eye(is_edge.shape[1], dtype=torch.bool)).float()
    reached = one_step
    for _ in range(hops - 1):
        reached = (reached @ one_step > 0).float()
    return reached > 0


def _count(index: Tensor, size: int) -> Tensor:
    """How often each of 0 .. size - 1 occurs, (size,) int64: ``bincount``, which ONNX does not have."""
    return torch.zeros(size, dtype=torch.int64).scatter_add(0, index, torch.ones_like(index))


def _offsets(counts: Tensor) -> Tensor:
    """Where each group begins, the total last: (B,) -> (B + 1,)."""
    return F.pad(counts.cumsum(0), (1, 0))


def _size(value: Tensor) -> int:
    """A number that becomes a dimension, and a symbol while tracing."""
    size: Any = value.item()
    _check(size >= 1)
    return size  # type: ignore[no-any-return]


def _check(condition: bool) -> None:
    torch._check(condition)  # type: ignore[no-untyped-call]


class TensorProgram(nn.Module):
    """A trained model that reads plain tensors, all by name.

    Args:
        network: The model.
        recipe: What it was trained with: the encoding, and the pairs.
        task: Turns what it gives into numbers in the targets' own units, or probabilities.
    """

    def __init__(self, network: nn.Module, recipe: Recipe, task: Task) -> None:
        super().__init__()
        if not isinstance(network, Grit):
            raise GritError(f"only GRIT can be exported; this run trained {recipe.model.name!r}.")
        if recipe.encoding.name not in EXPORTABLE_ENCODINGS:
            raise GritError(
                f"a model with the encoding {recipe.encoding.name!r} cannot be exported; "
                f"those with {', '.join(EXPORTABLE_ENCODINGS)} can."
            )
        if network.schema.level not in LEVELS:
            raise GritError(
                f"a model that predicts for each {network.schema.level} cannot be exported; "
                f"those that predict for each {' or '.join(LEVELS)} can."
            )
        if task.spec.kind == "mixed":
            raise GritError("a model of targets of several kinds cannot be exported.")
        if network.schema.graph_features:
            raise GritError(
                "a model that reads numbers of whole graphs (--features, --descriptors, graph_attr) cannot be exported."
            )
        self.network, self.task = network, task
        self.spec = recipe.batch_spec(next(network.parameters()).dtype)

    def forward(
        self, *, edge_index: Tensor, graph_of_node: Tensor, x: Tensor | None = None, edge_attr: Tensor | None = None
    ) -> Tensor:
        """Predict: (B, num_outputs) for graphs, (N, num_outputs) for nodes.

        Args:
            edge_index: (2, E) int64, row 0 the source and row 1 the target, numbered over the whole batch.
            graph_of_node: (N,) int64, which graph a node belongs to: 0 0 0 1 1 2 ..., none left out.
            x: (N, F); None for a model whose nodes carry nothing.
            edge_attr: (E, F); None for a model whose edges carry nothing.

        Input that breaks these rules gives NaN.
        """
        layout = node_layout(graph_of_node)
        batch = pair_batch(layout, edge_index, x, edge_attr, self.spec)
        outputs = self.task.outputs(self.network(batch).float())
        broken = broken_rules(layout, edge_index, x, edge_attr)
        return torch.where(broken == 0, outputs, torch.nan)
