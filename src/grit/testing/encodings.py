"""The rules of `ENCODINGS`."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.data import Data

from grit.encodings import ENCODINGS, Encoding, EncodingKind
from grit.graphs.convert import pack
from grit.graphs.packed import PackedGraphs
from grit.graphs.pairs import choose_pairs
from grit.testing.graphs import awkward_graphs, other_order_of_edges, random_order, renumbered
from grit.testing.rules import Rules, find_entry

_STEPS = 4


def check_encoding(
    encoding: str | EncodingKind, *, graphs: Sequence[Data] | None = None, walk_steps: Sequence[int] = (1, 2, 5)
) -> None:
    """Raise `AssertionError` unless an encoding keeps the rules of its table.

    Shapes as it declares them, types as asked for, finite numbers, for all pairs and for the edges alone; the same numbers
    whenever it is called, in whatever order edges are listed, in a batch or alone; pairs left out change nothing for the others;
    renumbering nodes renumbers the encoding; weights of edges count if and only if it says so.

    Args:
        encoding: Entry of `ENCODINGS`, or its name.
        graphs: What to try it on; `awkward_graphs` if not given.
        walk_steps: Sizes to try.
    """
    rules, kind = find_entry("encoding", encoding, ENCODINGS)
    graphs = awkward_graphs() if graphs is None else list(graphs)
    packed = pack(graphs)
    with rules.works("it takes any graph, any number of walk steps, float32 and float64"):
        _check_graphs_stay(rules, kind, packed)
        for steps in walk_steps:
            for dtype in (torch.float32, torch.float64):
                for pairs in ("all", "edges"):
                    _check_form(rules, kind, packed, pairs, steps, dtype)
        for one, again in zip(_compute(kind, packed), _compute(kind, packed), strict=True):
            rules.equal("the same graphs have the same encoding every time", again, one)
        _check_selection(rules, kind, packed)
        _check_sameness(rules, kind, graphs, packed)
        if kind.equivariant:
            for data in graphs:
                _check_renumbering(rules, kind, data)
        _check_weights(rules, kind, graphs)


def _compute(kind: EncodingKind, packed: PackedGraphs, pairs: str = "all") -> Encoding:
    return kind.compute(packed, choose_pairs(packed, pairs), _STEPS, torch.float64)


def _check_form(
    rules: Rules, kind: EncodingKind, packed: PackedGraphs, pairs_kind: str, walk_steps: int, dtype: torch.dtype
) -> None:
    pairs = choose_pairs(packed, pairs_kind)
    found = kind.compute(packed, pairs, walk_steps, dtype)
    of_nodes, of_pairs = kind.node_dim(walk_steps), kind.pair_dim(walk_steps)
    rules.shape("the node part is (nodes, node_dim(walk_steps))", found.node, (packed.num_nodes, of_nodes))
    rules.shape("the pair part is (pairs, pair_dim(walk_steps))", found.pair, (pairs.num_pairs, of_pairs))
    for part in found:
        rules.hold("it has the type that is asked for", part.dtype == dtype, f"got {part.dtype}, expected {dtype}")
        rules.finite("its numbers are finite", part)


def _check_graphs_stay(rules: Rules, kind: EncodingKind, packed: PackedGraphs) -> None:
    given = packed.map_tensors(torch.clone)
    _compute(kind, given)
    for name in ("x", "edge_index", "edge_attr", "node_ptr", "edge_ptr"):
        rules.equal("the graphs stay as they are", getattr(given, name), getattr(packed, name))


def _check_sameness(rules: Rules, kind: EncodingKind, graphs: Sequence[Data], packed: PackedGraphs) -> None:
    found = _compute(kind, packed)
    # Without weights: of parallel edges with different weights, the last one listed may count, as in RRWP.
    plain = [_weighted(data, None) for data in graphs]
    listed, shuffled = (_compute(kind, pack(each)) for each in (plain, [other_order_of_edges(data) for data in plain]))
    alone = [_compute(kind, pack([data])) for data in graphs]
    for part in ("node", "pair"):
        value: Tensor = getattr(found, part)
        rule = "the order in which edges are listed changes nothing"
        rules.close(rule, getattr(shuffled, part), getattr(listed, part))
        one_by_one = torch.cat([getattr(each, part) for each in alone])
        rules.close("a batch is encoded as its graphs one by one", value, one_by_one)


def _check_selection(rules: Rules, kind: EncodingKind, packed: PackedGraphs) -> None:
    everything, some = choose_pairs(packed), choose_pairs(packed, "edges")
    full, part = _compute(kind, packed), _compute(kind, packed, "edges")
    rule = "with fewer pairs the others keep their encoding"
    rules.close(rule, part.pair, full.pair[everything.find(some.query, some.key)])
    rules.close(rule, part.node, full.node)


def _check_renumbering(rules: Rules, kind: EncodingKind, data: Data) -> None:
    order = random_order(data.num_nodes)
    packed = pack([data])
    pairs = choose_pairs(packed)
    here, there = _compute(kind, packed), _compute(kind, pack([renumbered(data, order)]))
    rule = "renumbering the nodes renumbers the encoding and changes nothing else (or say equivariant=False)"
    rules.close(rule, there.node[order], here.node)
    rules.close(rule, there.pair[pairs.find(query=order[pairs.query], key=order[pairs.key])], here.pair)


def _check_weights(rules: Rules, kind: EncodingKind, graphs: Sequence[Data]) -> None:
    plain = [_weighted(data, None) for data in graphs]
    without = _compute(kind, pack(plain))
    ones = _compute(kind, pack([_weighted(data, torch.ones(data.num_edges)) for data in graphs]))
    generator = torch.Generator().manual_seed(0)
    drawn = [
        data if "edge_weight" in data else _weighted(data, torch.rand(data.num_edges, generator=generator))
        for data in graphs
    ]
    weighted = _compute(kind, pack(drawn))
    for part in ("node", "pair"):
        value = getattr(without, part)
        rules.close("weights that are all 1 change nothing", getattr(ones, part), value)
        rules.finite("it is finite for weighted edges", getattr(weighted, part))
        if not kind.reads_weights:
            rules.equal("edge_weight changes nothing (or say reads_weights=True)", getattr(weighted, part), value)
    if kind.reads_weights:
        triangle = Data(edge_index=torch.tensor([[0, 1, 0, 2, 1, 2], [1, 0, 2, 0, 2, 1]]), num_nodes=3)
        heavy = _compute(kind, pack([_weighted(triangle, torch.tensor([9.0, 9.0, 1.0, 1.0, 1.0, 1.0]))]))
        light = _compute(kind, pack([triangle]))
        same = all(torch.equal(one, other) for one, other in zip(heavy, light, strict=True))
        rules.hold("edge_weight changes the encoding, as reads_weights=True says", not same)


def _weighted(data: Data, weight: Tensor | None) -> Data:
    changed = Data(edge_index=data.edge_index, num_nodes=data.num_nodes)
    if weight is not None:
        changed.edge_weight = weight.double()
    return changed
