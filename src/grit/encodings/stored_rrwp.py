"""RRWP that graphs carry with them, from `AddRRWP` or from the released code: read, checked, spread over the pairs.

Values outlive what they were computed from: ``data.subgraph(...)`` or a dropped edge leaves them behind. The walk matrix M,
which is channel 1, decides all other channels, so the values belong to a graph if channel 1 is the M of its present edges.

Shape letters: N nodes of the batch, P pairs, Q stored pairs, K walk steps.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import torch
import torch.nn.functional as F
from torch import Tensor

from grit.encodings.encoding import Encoding
from grit.encodings.rrwp import WalkMatrix, log_degree, walk_matrix
from grit.errors import GritError
from grit.graphs.packed import PackedGraphs
from grit.graphs.pairs import Pairs

if TYPE_CHECKING:
    from torch_geometric.data import Data

_NAMES = ("rrwp", "rrwp_index", "rrwp_val", "log_deg")


class StoredRRWP(NamedTuple):
    """RRWP of a batch, stored pairs row by row.

    Attributes:
        node: (N, K).
        start: (Q,) int64, where each walk starts (the query i), numbered over the batch, not decreasing.
        end: (Q,) int64, where it ends (the key j), increasing for each start.
        value: (Q, K).
        log_degree: (N,), ln(1 + out-degree).
    """

    node: Tensor
    start: Tensor
    end: Tensor
    value: Tensor
    log_degree: Tensor


def stored_rrwp(data_list: Sequence["Data"], graphs: PackedGraphs, walk_steps: int) -> StoredRRWP | None:
    """What these graphs carry; None if some have nothing, or other walk_steps.

    Args:
        data_list: The graphs, or a single PyG ``Batch`` of them.
        graphs: The same, packed.
        walk_steps: K.

    Raises:
        GritError: The values are not those of the graphs' present edges.
    """
    if not all(name in data for data in data_list for name in _NAMES):
        return None
    values = [data.rrwp_val for data in data_list]
    if any(isinstance(value, Tensor) and value.dim() == 2 and value.shape[1] != walk_steps for value in values):
        return None
    for g, data in enumerate(data_list):
        _check_shapes(f"graph {g}" if len(data_list) == len(graphs) else "the batch", data)
    sizes = [int(data.num_nodes) for data in data_list]
    first = torch.tensor([0, *sizes]).cumsum(0)[:-1].tolist()
    end, start = torch.cat([data.rrwp_index.long() + k for data, k in zip(data_list, first, strict=True)], 1)
    code, order = torch.sort(start * graphs.num_nodes + end)
    stored = StoredRRWP(
        node=torch.cat([data.rrwp for data in data_list]),
        start=start[order],
        end=end[order],
        value=torch.cat(values)[order],
        log_degree=torch.cat([data.log_deg for data in data_list]),
    )
    _check_belongs(stored, code, graphs)
    return stored


def spread(stored: StoredRRWP, pairs: Pairs, dtype: torch.dtype) -> Encoding:
    """Stored RRWP at the chosen pairs; pairs that no walk joins are zero."""
    at = pairs.find(query=stored.start, key=stored.end)
    pair = torch.zeros(pairs.num_pairs, stored.value.shape[1], dtype=dtype)
    pair[at[at >= 0]] = stored.value[at >= 0].to(dtype)
    return Encoding(node=stored.node.to(dtype), pair=pair)


def _refuse(where: str, why: str) -> NoReturn:
    raise GritError(
        f"{where}: the RRWP stored with it is not that of its edges: {why}. Apply AddRRWP after the last change of nodes, edges "
        "or weights; or delete data.rrwp, and RRWP is computed with the batch."
    )


def _check_shapes(where: str, data: "Data") -> None:
    n = int(data.num_nodes)
    for name in _NAMES:
        if not isinstance(data[name], Tensor) or data[name].is_floating_point() == (name == "rrwp_index"):
            wanted = "integers" if name == "rrwp_index" else "floating-point numbers"
            _refuse(where, f"{name} must be a tensor of {wanted}")
    index, value = data.rrwp_index, data.rrwp_val
    if index.dim() != 2 or index.shape[0] != 2:
        _refuse(where, f"rrwp_index has shape {tuple(index.shape)}, expected (2, Q)")
    if value.dim() != 2 or value.shape[1] == 0 or value.shape[0] != index.shape[1]:
        _refuse(where, f"rrwp_val has shape {tuple(value.shape)}, expected ({index.shape[1]}, K), a row for each pair")
    for name, shape in (("rrwp", (n, value.shape[1])), ("log_deg", (n,))):
        if tuple(data[name].shape) != shape:
            _refuse(where, f"{name} has shape {tuple(data[name].shape)}, expected {shape} for {n} nodes")
    if index.numel() and not 0 <= int(index.min()) <= int(index.max()) < n:
        _refuse(where, f"rrwp_index refers to nodes outside 0..{n - 1}")


def _check_belongs(stored: StoredRRWP, code: Tensor, graphs: PackedGraphs) -> None:
    """Raise unless the values are those of the graphs; ``code`` is start * N + end, sorted."""
    start, end, graph_of_node = stored.start, stored.end, graphs.graph_of_node

    def refuse(node: Tensor, why: str) -> NoReturn:
        _refuse(f"graph {int(graph_of_node[node])}", why)

    def name(node: Tensor) -> str:
        return f"node {int(node - graphs.node_ptr[graph_of_node[node]])}"

    if (q := _first(code.diff() == 0)) is not None:
        refuse(start[q], f"rrwp_index lists the walks from {name(start[q])} to {name(end[q])} twice")
    if (q := _first(graph_of_node[start] != graph_of_node[end])) is not None:
        refuse(start[q], "rrwp_index joins nodes of two graphs")
    nodes = torch.arange(graphs.num_nodes)
    identity = WalkMatrix(nodes, nodes, torch.ones(graphs.num_nodes, dtype=torch.float64))
    for matrix, value, steps in zip(
        (identity, walk_matrix(graphs, torch.float64)), stored.value.unbind(1), ("no step", "one step"), strict=False
    ):
        wanted = matrix.source * graphs.num_nodes + matrix.target
        at = torch.searchsorted(code, wanted)
        listed = F.pad(code, (0, 1), value=-1)[at] == wanted
        probability = torch.zeros(code.numel(), dtype=torch.float64)
        probability[at[listed]] = matrix.probability[listed]
        if (q := _first(_differ(value, probability))) is not None:
            way = f"the probability to go from {name(start[q])} to {name(end[q])} in {steps}"
            refuse(start[q], f"{way} is {float(probability[q]):.4g}, stored is {float(value[q]):.4g}")
        if (z := _first(~listed & (matrix.probability.to(value.dtype) > 0))) is not None:
            way = f"the probability to go from {name(matrix.source[z])} to {name(matrix.target[z])} in {steps}"
            refuse(matrix.source[z], f"{way} is {float(matrix.probability[z]):.4g}, stored is none")
    if (i := _first(_differ(stored.node, stored.value[start == end]).any(1))) is not None:
        refuse(nodes[i], f"rrwp and rrwp_val disagree about {name(nodes[i])}")
    logarithm = log_degree(graphs.weighted_degree(torch.float64))
    if (i := _first(_differ(stored.log_degree, logarithm, scale=1.0))) is not None:
        right, got = float(logarithm[i]), float(stored.log_degree[i])
        refuse(nodes[i], f"log_deg of {name(nodes[i])} is {got:.4g}, expected {right:.4g}")


def _first(wrong: Tensor) -> int | None:
    return int(wrong.nonzero()[0]) if bool(wrong.any()) else None


def _differ(got: Tensor, wanted: Tensor, scale: float = 0.0) -> Tensor:
    """Where they differ by more than rounding of numbers of their size, or of ``scale``; NaN always does."""
    kind = torch.finfo(got.dtype)
    precision = max(1e-5, 4 * kind.eps)
    return ~torch.isclose(got.double(), wanted.double(), rtol=precision, atol=kind.tiny + precision * scale)
