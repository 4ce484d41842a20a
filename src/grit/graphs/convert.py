"""From PyG: a list of ``Data``, or a ``Batch``, to `PackedGraphs`."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeGuard

import numpy as np
import torch
from torch import Tensor

from grit.errors import GritError
from grit.graphs.chunk import Array, GraphChunk
from grit.graphs.packed import PackedGraphs, offsets

if TYPE_CHECKING:
    from torch_geometric.data import Data

_INTEGER = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8)


def is_graph(item: object) -> TypeGuard["Data"]:
    """Whether it is a graph of PyG. PyG, which takes longer to load than a prediction, is not loaded for this."""
    if "torch_geometric.data" not in sys.modules:  # there is no graph of a library that nobody has loaded
        return False
    from torch_geometric.data import Data

    return isinstance(item, Data)


def on_cpu(data_list: Sequence["Data"]) -> tuple[list["Data"], torch.device]:
    """The graphs in main memory, where batches are put together, and the device that they came from."""
    if is_graph(data_list):
        raise GritError("expected a list of graphs, got a single one. Write [data] instead of data.")
    if not isinstance(data_list, Sequence):
        raise GritError(f"expected a list of graphs, got {type(data_list).__name__}.")
    if len(data_list) == 0:
        raise GritError("the list of graphs is empty; a batch needs at least one graph.")
    for g, data in enumerate(data_list):
        if not is_graph(data):
            raise GritError(f"graph {g}: expected a torch_geometric.data.Data, got {type(data).__name__}.")
    device = next(
        (data.edge_index.device for data in data_list if isinstance(data.edge_index, Tensor)), torch.device("cpu")
    )
    return (list(data_list) if device.type == "cpu" else [data.cpu() for data in data_list]), device


def pack(data_list: Sequence["Data"]) -> PackedGraphs:
    """Lay PyG graphs end to end.

    Read from each graph: ``x`` (n,) or (n, F), ``edge_index`` (2, E), ``edge_attr`` (E,) or (E, F), ``edge_weight`` (E,) or
    (E, 1), ``y``, for edge-level targets ``edge_label_index`` (2, Q) with ``edge_label``, and ``graph_attr`` (1, F) or (F,),
    numbers of the whole graph with NaN where missing. All but ``edge_index`` may be absent, but the graphs must agree on what
    they carry.
    """
    data_list, _ = on_cpu(data_list)
    nodes = torch.tensor([_num_nodes(g, data) for g, data in enumerate(data_list)])
    edges = [_edge_index(g, data) for g, data in enumerate(data_list)]
    node_ptr = offsets(nodes)
    edge_ptr = offsets(torch.tensor([edge.shape[1] for edge in edges]))
    label_index = _together("edge_label_index", [_optional(data, "edge_label_index") for data in data_list])
    for g, index in enumerate(label_index or []):
        _check_label_index(f"graph {g}", index)
        if index.numel() and (int(index.min()) < 0 or int(index.max()) >= int(nodes[g])):
            raise GritError(f"graph {g}: edge_label_index refers to nodes outside 0..{int(nodes[g]) - 1}.")
    labels = "y" if label_index is None else "edge_label"
    if label_index is None and all(isinstance(_optional(data, "y"), Tensor) for data in data_list):
        _check_target_rows([data.y for data in data_list], nodes.tolist())
    return PackedGraphs(
        x=_features("x", [data.x for data in data_list], nodes.tolist()),
        edge_index=torch.cat([edge + start for edge, start in zip(edges, node_ptr, strict=False)], 1),
        edge_attr=_features("edge_attr", [data.edge_attr for data in data_list], [edge.shape[1] for edge in edges]),
        node_ptr=node_ptr,
        edge_ptr=edge_ptr,
        y=_targets(labels, [_optional(data, labels) for data in data_list]),
        label_index=None
        if label_index is None
        else torch.cat([index.long() + start for index, start in zip(label_index, node_ptr, strict=False)], 1),
        edge_weight=_weights([_optional(data, "edge_weight") for data in data_list], edges),
        graph_attr=_graph_attr([_optional(data, "graph_attr") for data in data_list]),
    )


def pack_batch(batch: "Data") -> PackedGraphs:
    """The same for a PyG ``Batch``, or a ``Data`` with a ``batch`` vector, whose tensors are concatenated already.

    A ``Data`` without that vector is a single graph.
    """
    from torch_geometric.data import Batch

    graph_of_node = _optional(batch, "batch")
    if graph_of_node is None:
        if isinstance(batch, Batch):
            raise GritError("the PyG batch has no batch vector, which says what graph each node belongs to.")
        return pack([batch])
    n = _num_nodes(0, batch)
    sound = isinstance(graph_of_node, Tensor) and graph_of_node.dtype in _INTEGER and graph_of_node.shape == (n,)
    if not sound or int(graph_of_node[0]) < 0 or bool((graph_of_node.diff() < 0).any()):
        raise GritError("the batch vector must name the graph of each node, graphs in order, as an integer tensor.")
    graph_of_node = graph_of_node.long()
    num_graphs = int(batch.num_graphs) if isinstance(batch, Batch) else int(graph_of_node[-1]) + 1
    edge_index = _edge_index(0, batch)
    outside = (edge_index < 0) | (edge_index >= n)
    if bool(outside.any()):
        raise GritError(f"edge_index of the batch refers to nodes outside 0..{n - 1}.")
    graph_of_edge, by_graph = torch.sort(graph_of_node[edge_index[0]], stable=True)
    edge_attr = _features("edge_attr", [batch.edge_attr], [edge_index.shape[1]])
    edge_weight = _weights([_optional(batch, "edge_weight")], [edge_index])
    edge_level = "edge_label_index" in batch
    labels = "edge_label" if edge_level else "y"
    if edge_level:
        _check_label_index("the batch", batch.edge_label_index)
    return PackedGraphs(
        x=_features("x", [batch.x], [n]),
        edge_index=edge_index[:, by_graph],
        edge_attr=edge_attr[by_graph],
        node_ptr=offsets(torch.bincount(graph_of_node, minlength=num_graphs)),
        edge_ptr=offsets(torch.bincount(graph_of_edge, minlength=num_graphs)),
        y=_targets(labels, [_optional(batch, labels)]),
        label_index=batch.edge_label_index.long() if edge_level else None,
        edge_weight=None if edge_weight is None else edge_weight[by_graph],
        graph_attr=_batched_graph_attr(_optional(batch, "graph_attr"), num_graphs),
    )


def pack_chunk(chunk: GraphChunk) -> PackedGraphs:
    """NumPy graphs as tensors; targets are left out."""
    node_ptr = offsets(torch.from_numpy(chunk.num_nodes))
    edge_count = torch.from_numpy(chunk.num_edges)
    first = torch.repeat_interleave(node_ptr[:-1], edge_count)
    return PackedGraphs(
        x=_as_tensor(chunk.x),
        edge_index=torch.from_numpy(chunk.edge_index.astype(np.int64)) + first,
        edge_attr=_as_tensor(chunk.edge_attr),
        node_ptr=node_ptr,
        edge_ptr=offsets(edge_count),
        graph_attr=None if chunk.graph_attr is None else torch.from_numpy(chunk.graph_attr.astype(np.float32)),
    )


def _as_tensor(values: Array) -> Tensor:
    return torch.from_numpy(values.astype(np.float32 if values.dtype.kind == "f" else np.int64))


def _check_label_index(where: str, index: object) -> None:
    if not isinstance(index, Tensor) or index.dim() != 2 or index.shape[0] != 2 or index.dtype not in _INTEGER:
        raise GritError(f"{where}: edge_label_index must be an integer tensor of shape (2, Q).")


def _check_target_rows(targets: list[Tensor | None], nodes: list[int]) -> None:
    """Targets belong to the graphs, one row each, or to their nodes."""
    rows = [1 if target is None or target.dim() == 0 else target.shape[0] for target in targets]
    if rows != nodes and any(count != 1 for count in rows):
        g = next(g for g, count in enumerate(rows) if count != 1 and (count != nodes[g] or rows != nodes))
        raise GritError(
            f"graph {g}: y has {rows[g]} rows and the graph {nodes[g]} nodes: targets of a graph have shape (1, T), "
            "of its nodes (n, T), and all graphs of a batch have the same kind."
        )


def _optional(data: "Data", name: str) -> Tensor | None:
    return data[name] if name in data else None


def _num_nodes(g: int, data: "Data") -> int:
    if data.num_nodes is None:
        raise GritError(f"graph {g}: neither x nor num_nodes says how many nodes it has. Set data.num_nodes.")
    return int(data.num_nodes)


def _edge_index(g: int, data: "Data") -> Tensor:
    index = data.edge_index
    if index is None:
        raise GritError(
            f"graph {g}: edge_index is missing. A graph without edges has edge_index = torch.empty(2, 0, dtype=torch.long)."
        )
    if not isinstance(index, Tensor) or index.dim() != 2 or index.shape[0] != 2:
        shape = tuple(index.shape) if isinstance(index, Tensor) else type(index).__name__
        raise GritError(f"graph {g}: edge_index must be a tensor of shape (2, E), got {shape}.")
    if index.dtype not in _INTEGER:
        raise GritError(f"graph {g}: edge_index must hold integers, got {index.dtype}. Use edge_index.long().")
    return index.long()


def _together(name: str, parts: list[Tensor | None]) -> list[Tensor] | None:
    """The parts if every graph has one, None if none has; an error where they disagree."""
    present = [part for part in parts if part is not None]
    if not present:
        return None
    if len(present) < len(parts):
        missing = next(g for g, part in enumerate(parts) if part is None)
        having = next(g for g, part in enumerate(parts) if part is not None)
        raise GritError(
            f"graph {missing} has no {name} but graph {having} has: either all graphs of a batch carry it, or none."
        )
    return present


def _features(name: str, parts: list[Tensor | None], rows: list[int]) -> Tensor:
    present = _together(name, parts)
    if present is None:
        return torch.zeros(sum(rows), 0)
    columns: list[Tensor] = []
    for g, (part, wanted) in enumerate(zip(present, rows, strict=True)):
        if not isinstance(part, Tensor):
            raise GritError(f"graph {g}: {name} must be a tensor, got {type(part).__name__}. Use torch.as_tensor.")
        column = part.unsqueeze(1) if part.dim() == 1 else part
        if column.dim() != 2 or column.shape[0] != wanted:
            raise GritError(f"graph {g}: {name} has shape {tuple(part.shape)}, expected {wanted} rows of features.")
        if column.dtype in _INTEGER:
            column = column.long()
        elif not column.is_floating_point():
            raise GritError(f"graph {g}: {name} has type {part.dtype}; features are integers (categories) or floats.")
        first = columns[0] if columns else column
        if column.shape[1] != first.shape[1]:
            raise GritError(
                f"graph {g}: {name} has {column.shape[1]} columns but graph 0 has {first.shape[1]}; "
                "all graphs of a batch must have the same features."
            )
        if column.dtype != first.dtype:
            raise GritError(
                f"graph {g}: {name} is {column.dtype} but that of graph 0 is {first.dtype}; "
                "all graphs of a batch must have the same features."
            )
        columns.append(column)
    return torch.cat(columns)


def _weights(parts: list[Tensor | None], edges: list[Tensor]) -> Tensor | None:
    """``edge_weight`` of all graphs, (E,); what the weights may be is checked by `PackedGraphs`."""
    present = _together("edge_weight", parts)
    if present is None:
        return None
    for g, (part, edge_index) in enumerate(zip(present, edges, strict=True)):
        num_edges = edge_index.shape[1]
        if not isinstance(part, Tensor) or tuple(part.shape) not in ((num_edges,), (num_edges, 1)):
            got = f"shape {tuple(part.shape)}" if isinstance(part, Tensor) else f"type {type(part).__name__}"
            raise GritError(
                f"graph {g}: edge_weight has {got}, expected a tensor of shape ({num_edges},): one weight for each edge."
            )
        if not part.is_floating_point() and part.dtype not in _INTEGER:
            raise GritError(f"graph {g}: edge_weight has type {part.dtype}; weights are numbers.")
    return torch.cat([part.reshape(-1) if part.is_floating_point() else part.reshape(-1).double() for part in present])


def _graph_attr(parts: list[Tensor | None]) -> Tensor | None:
    """``graph_attr`` of all graphs, (B, F) floating; which numbers it may hold is checked by `PackedGraphs`."""
    present = _together("graph_attr", parts)
    if present is None:
        return None
    rows = []
    for g, part in enumerate(present):
        if not isinstance(part, Tensor) or part.dim() > 2 or (part.dim() == 2 and part.shape[0] != 1):
            got = f"shape {tuple(part.shape)}" if isinstance(part, Tensor) else f"type {type(part).__name__}"
            raise GritError(
                f"graph {g}: graph_attr has {got}, expected a tensor of shape (1, F): numbers of the graph."
            )
        rows.append(_numbers(f"graph {g}", part).reshape(1, -1))
        if rows[-1].shape[1] != rows[0].shape[1]:
            raise GritError(
                f"graph {g}: graph_attr holds {rows[-1].shape[1]} numbers, that of graph 0 {rows[0].shape[1]}; all graphs of "
                "a batch must have the same."
            )
    return torch.cat(rows)


def _batched_graph_attr(values: Tensor | None, num_graphs: int) -> Tensor | None:
    """``graph_attr`` as PyG concatenates it: (B, F) of graphs with (1, F), (B * F,) of graphs with (F,)."""
    if values is None:
        return None
    if not isinstance(values, Tensor) or values.dim() not in (1, 2) or values.shape[0] % num_graphs:
        got = f"shape {tuple(values.shape)}" if isinstance(values, Tensor) else f"type {type(values).__name__}"
        raise GritError(f"graph_attr of the batch has {got}, expected a tensor of shape ({num_graphs}, F).")
    return _numbers("the batch", values).reshape(num_graphs, -1)


def _numbers(where: str, values: Tensor) -> Tensor:
    if not values.is_floating_point() and values.dtype not in (*_INTEGER, torch.bool):
        raise GritError(f"{where}: graph_attr has type {values.dtype}; it holds numbers.")
    return values if values.is_floating_point() else values.float()


def _targets(name: str, parts: list[Tensor | None]) -> Tensor | None:
    present = _together(name, parts)
    if present is None:
        return None
    columns = []
    for g, part in enumerate(present):
        if not isinstance(part, Tensor):
            raise GritError(f"graph {g}: {name} must be a tensor, got {type(part).__name__}.")
        columns.append(part.reshape(-1, 1) if part.dim() < 2 else part)  # (R, T)
        if columns[-1].dim() != 2 or columns[-1].shape[1] != columns[0].shape[1]:
            raise GritError(
                f"graph {g}: {name} has shape {tuple(part.shape)}, but that of graph 0 has shape "
                f"{tuple(present[0].shape)}; targets of a graph are (1, T), of its nodes (n, T)."
            )
    return torch.cat(columns)
