import pytest
import torch

import grit
from grit.graphs.packed import PackedGraphs, offsets


def fields(**changes):
    return {
        "x": torch.zeros(5, 1),
        "edge_index": torch.tensor([[0, 1, 3], [1, 0, 4]]),
        "edge_attr": torch.zeros(3, 0),
        "node_ptr": torch.tensor([0, 3, 5]),
        "edge_ptr": torch.tensor([0, 2, 3]),
        **changes,
    }


def test_properties():
    graphs = PackedGraphs(**fields())
    assert (len(graphs), graphs.num_nodes, graphs.num_edges) == (2, 5, 3)
    assert graphs.nodes_per_graph.tolist() == [3, 2]
    assert graphs.graph_of_node.tolist() == [0, 0, 0, 1, 1]
    assert graphs.degree().tolist() == [1, 1, 0, 1, 0]
    assert repr(graphs) == "PackedGraphs(2 graphs, 5 nodes, 3 edges)"


def test_part():
    second = PackedGraphs(**fields(x=torch.arange(5.0).view(5, 1), edge_attr=torch.arange(3.0).view(3, 1))).part(1, 2)
    assert second.x.tolist() == [[3.0], [4.0]]
    assert second.edge_index.tolist() == [[0], [1]]
    assert second.edge_attr.tolist() == [[2.0]]
    assert second.edge_weight is None
    assert second.node_ptr.tolist() == [0, 2]
    assert second.edge_ptr.tolist() == [0, 1]
    weighted = PackedGraphs(**fields(edge_weight=torch.tensor([1.0, 2.0, 3.0])))
    assert weighted.part(1, 2).edge_weight.tolist() == [3.0]
    assert weighted.part(1, 2).weighted_degree(torch.float64).tolist() == [3.0, 0.0]
    whole = PackedGraphs(**fields()).part(0, 2)
    assert torch.equal(whole.edge_index, fields()["edge_index"])


@pytest.mark.parametrize("rows", [2, 5])
def test_targets_of_graphs_or_of_nodes(rows):
    assert PackedGraphs(**fields(y=torch.zeros(rows, 3))).y.shape == (rows, 3)


def test_offsets():
    assert offsets(torch.tensor([2, 0, 3])).tolist() == [0, 2, 2, 5]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"edge_index": torch.tensor([[0, 1, 3], [1, 0, 2]])}, "graph 1: edge_index has the edge 0 -> -1"),
        ({"edge_index": torch.zeros(2, 3)}, "edge_index must be int64, got torch.float32"),
        ({"edge_index": torch.zeros(3, 3).long()}, r"shape \(2, E\), got \(3, 3\)"),
        ({"edge_attr": torch.zeros(2, 1)}, "edge_attr has 2 rows but there are 3 edges"),
        ({"x": torch.zeros(5)}, r"x must have shape \(rows, features\)"),
        ({"x": torch.zeros(5, 1, dtype=torch.int32)}, "x must be int64 .* got torch.int32"),
        ({"node_ptr": torch.tensor([0, 3, 6])}, "node_ptr must rise from 0 to 5"),
        ({"node_ptr": torch.tensor([0, 5])}, "node_ptr is for 1 graphs, edge_ptr for 2"),
        ({"edge_ptr": torch.tensor([0, 4, 3])}, "edge_ptr must rise from 0 to 3"),
        ({"edge_ptr": torch.tensor([0])}, "at least 2"),
        ({"node_ptr": torch.tensor([0, 5, 5])}, "graph 1 has no nodes"),
        ({"y": torch.zeros(2)}, r"y must have shape \(rows, targets\)"),
        ({"y": torch.zeros(3, 1)}, r"y has 3 rows for 2 graphs with 5 nodes: targets of a graph have shape \(1, T\)"),
        (
            {"y": torch.zeros(3, 1), "label_index": torch.tensor([[0, 1], [1, 2]])},
            "there are 3 edge labels for 2 labelled pairs",
        ),
        ({"label_index": torch.tensor([[0], [5]])}, r"label_index refers to nodes outside 0\.\.4"),
        ({"label_index": torch.tensor([[-1], [0]])}, r"label_index refers to nodes outside 0\.\.4"),
        ({"x": torch.full((5, 1), torch.nan)}, r"graph 0: node features \(x\) hold nan in row 0"),
        ({"label_index": torch.zeros(2, 2)}, r"label_index must be int64 of shape \(2, Q\)"),
        ({"label_index": torch.tensor([[0], [4]])}, "two different graphs"),
        ({"edge_weight": torch.ones(2)}, r"edge_weight must be floating of shape \(3,\), .* got torch.float32 \(2,\)"),
        ({"edge_weight": torch.ones(3).long()}, "edge_weight must be floating .* got torch.int64"),
        ({"edge_weight": torch.tensor([1.0, 0.0, -1.0])}, "graph 1: edge_weight of edge 0 is -1.0"),
    ],
)
def test_checks(changes, message):
    with pytest.raises(grit.GritError, match=message):
        PackedGraphs(**fields(**changes))
