import copy
import dataclasses
import pickle
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader

import grit
from tests.graph_strategies import featured_graphs

EDGES = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


def molecule(**changes):
    fields = {
        "x": torch.tensor([[1], [0], [2]]),
        "edge_index": EDGES,
        "edge_attr": torch.tensor([1, 1, 2, 2]),
        "y": torch.tensor([0.5]),
    }
    return Data(**{name: value for name, value in {**fields, **changes}.items() if value is not None})


def test_fields_of_a_small_batch():
    batch = grit.PairBatch.from_data_list([molecule(), molecule()], walk_steps=5)
    assert len(batch) == batch.num_graphs == 2
    assert (batch.num_nodes, batch.num_pairs, batch.graphs.num_edges) == (6, 18, 8)
    assert batch.x.shape == (6, 1)
    assert batch.y.tolist() == [[0.5], [0.5]]
    assert batch.graphs.edge_attr.shape == (8, 1)
    assert batch.row_ptr.tolist() == [0, 3, 6, 9, 12, 15, 18]
    assert batch.degree.tolist() == [1, 2, 1, 1, 2, 1]
    torch.testing.assert_close(batch.log_degree, torch.log1p(batch.degree.float()))
    assert batch.node_encoding.shape == (6, 5)
    assert batch.pair_encoding.shape == (18, 5)
    assert repr(batch) == ("PairBatch(2 graphs, 6 nodes, 8 edges, 18 pairs, encodings 5/5 wide, float32 on cpu)")


def test_is_frozen():
    batch = grit.PairBatch.from_data_list([molecule()])
    with pytest.raises(dataclasses.FrozenInstanceError):
        batch.degree = torch.zeros(3)


def test_moves_and_changes_type():
    batch = grit.PairBatch.from_data_list([molecule()], walk_steps=3)
    double = batch.to(torch.float64)
    assert double.pair_encoding.dtype == double.log_degree.dtype == double.y.dtype == torch.float64
    assert double.x.dtype == double.pairs.query.dtype == torch.int64
    assert batch.pair_encoding.dtype == torch.float32
    meta = batch.to("meta")
    assert meta.x.device.type == meta.pairs.row_ptr.device.type == meta.graphs.edge_index.device.type == "meta"
    assert batch.to("cpu") is batch
    with pytest.raises(TypeError, match="floating-point type"):
        batch.to(torch.int32)


def test_pins_every_tensor(monkeypatch):
    pinned = []
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: pinned.append(tensor) or tensor.clone())
    batch = grit.PairBatch.from_data_list([molecule()]).pin_memory()
    assert len(pinned) == 14
    assert torch.equal(batch.x, molecule().x)


@given(st.lists(featured_graphs(), min_size=1, max_size=4), st.sampled_from(["all", "edges"]))
def test_pygs_batch_gives_the_same(data_list, kind):
    for g, data in enumerate(data_list):
        data.y = torch.tensor([[0.5 + g, -g]])
    wanted = grit.PairBatch.from_data_list(data_list, walk_steps=4, pairs=kind)
    got = grit.PairBatch.from_pyg(Batch.from_data_list(data_list), walk_steps=4, pairs=kind)
    assert_same(got, wanted)


def assert_same(got, wanted):
    parts = [(got.graphs, wanted.graphs), (got.pairs, wanted.pairs), (got, wanted)]
    for mine, other in parts:
        for field in dataclasses.fields(other):
            value, expected = getattr(mine, field.name), getattr(other, field.name)
            if isinstance(expected, torch.Tensor):
                assert value.dtype == expected.dtype, field.name
                assert torch.equal(value, expected), field.name
            elif expected is None:
                assert value is None, field.name


def molecules():
    """Two graphs that differ in everything, sizes too."""
    other = Data(
        x=torch.tensor([[2], [3]]),
        edge_index=torch.tensor([[0, 1, 1], [1, 0, 0]]),
        edge_attr=torch.tensor([3, 4, 5]),
        y=torch.tensor([-1.5]),
    )
    return [molecule(), other]


def with_labels():
    first, second = molecules()
    first.edge_label_index, first.edge_label = torch.tensor([[0, 2, 1], [2, 0, 1]]), torch.tensor([1.0, 0.0, 3.0])
    second.edge_label_index, second.edge_label = torch.tensor([[1], [0]]), torch.tensor([2.0])
    return [first, second]


def test_pygs_loader_and_single_graph():
    loaded = next(iter(DataLoader(molecules(), batch_size=3)))
    assert_same(grit.PairBatch.from_pyg(loaded), grit.PairBatch.from_data_list(molecules()))
    assert_same(grit.PairBatch.from_pyg(molecule()), grit.PairBatch.from_data_list([molecule()]))


def test_pygs_batch_keeps_labelled_pairs():
    got = grit.PairBatch.from_pyg(Batch.from_data_list(with_labels()))
    assert_same(got, grit.PairBatch.from_data_list(with_labels()))
    assert got.y.tolist() == [[1.0], [0.0], [3.0], [2.0]]
    assert got.graphs.label_index.tolist() == [[0, 2, 1, 4], [2, 0, 1, 3]]


def test_pygs_batch_without_targets():
    data_list = [molecule(y=None), molecule(y=None)]
    assert grit.PairBatch.from_pyg(Batch.from_data_list(data_list)).y is None


def test_plain_data_with_a_batch_vector():
    joined = Batch.from_data_list(molecules())
    fields = {name: joined[name] for name in ("x", "edge_index", "edge_attr", "y", "batch")}
    got = grit.PairBatch.from_pyg(Data(**fields))
    assert got.num_graphs == 2
    assert_same(got, grit.PairBatch.from_data_list(molecules()))


def test_pygs_batch_with_edges_out_of_order():
    batch = Batch.from_data_list(molecules())
    order = torch.tensor([4, 0, 1, 5, 2, 6, 3])  # graphs mixed, the order within each kept
    batch.edge_index, batch.edge_attr = batch.edge_index[:, order], batch.edge_attr[order]
    assert_same(grit.PairBatch.from_pyg(batch), grit.PairBatch.from_data_list(molecules()))


def changed_batch(vector):
    batch = Batch.from_data_list(molecules())
    batch.batch = vector
    return batch


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (changed_batch(None), "the PyG batch has no batch vector"),
        (changed_batch(torch.tensor([0, 1, 0, 1, 0])), "must name the graph of each node, graphs in order"),
        (changed_batch(torch.tensor([0, 0, 0, 1])), "must name the graph of each node"),
        (changed_batch(torch.tensor([[0, 0, 0, 1, 1]])), "must name the graph of each node"),
        (changed_batch(torch.tensor([0, 0, 0, 2, 2])), "graph 1 has no nodes"),
        (None, "expected a torch_geometric.data.Data, got NoneType"),
        ([molecule()], "expected a torch_geometric.data.Data, got list"),
    ],
)
def test_bad_batches_of_pyg(batch, message):
    with pytest.raises(grit.GritError, match=message):
        grit.PairBatch.from_pyg(batch)


def test_targets_of_graphs_nodes_and_edges():
    assert grit.PairBatch.from_data_list([molecule(y=None)]).y is None
    assert grit.PairBatch.from_data_list([molecule(y=torch.tensor(1.0))] * 2).y.shape == (2, 1)
    assert grit.PairBatch.from_data_list([molecule(y=torch.ones(1, 4))] * 2).y.shape == (2, 4)
    assert grit.PairBatch.from_data_list([molecule(y=torch.tensor([0, 1, 0]))] * 2).y.shape == (6, 1)
    labelled = molecule(edge_label_index=torch.tensor([[0, 2], [2, 0]]), edge_label=torch.tensor([1.0, 0.0]))
    batch = grit.PairBatch.from_data_list([labelled, labelled])
    assert batch.y.tolist() == [[1.0], [0.0], [1.0], [0.0]]
    assert batch.graphs.label_index.tolist() == [[0, 2, 3, 5], [2, 0, 5, 3]]


@pytest.mark.parametrize("name", ["rrwp", "rwse", "spd", "none"])
def test_every_encoding_by_name(name):
    batch = grit.PairBatch.from_data_list([molecule()], walk_steps=4, encoding=name)
    assert batch.node_encoding.shape[1] in (0, 4)


def nan_features():
    return molecule(x=torch.tensor([[1.0], [float("nan")], [0.0]]))


@pytest.mark.parametrize(
    ("graphs", "message"),
    [
        ([], "list of graphs is empty"),
        (molecule(), r"got a single one. Write \[data\]"),
        ([{"x": 1}], "graph 0: expected a torch_geometric.data.Data, got dict"),
        ([molecule(), molecule(edge_index=EDGES + 1)], "graph 1: .* edge 2 -> 3, but the graph has 3 nodes"),
        ([molecule(edge_index=EDGES - 1)], "graph 0: .* edge -1 -> 0"),
        ([molecule(edge_index=EDGES.float())], "graph 0: edge_index must hold integers, got torch.float32"),
        ([molecule(edge_index=EDGES.t())], r"shape \(2, E\), got \(4, 2\)"),
        ([molecule(edge_index=None)], "edge_index is missing. A graph without edges has"),
        ([molecule(), nan_features()], "graph 1: x is torch.float32 but"),
        ([nan_features()], r"graph 0: node features \(x\) hold nan in row 1, column 0"),
        ([molecule(edge_attr=torch.tensor([0.0, 1.0, float("inf"), 0.0]))], r"edge features .* hold inf in row 2"),
        ([molecule(), molecule(x=torch.zeros(3, 2).long())], "graph 1: x has 2 columns but graph 0 has 1"),
        ([molecule(x=torch.zeros(3, 1).bool())], "x has type torch.bool"),
        ([molecule(edge_attr=torch.zeros(3))], r"edge_attr has shape \(3,\), expected 4 rows"),
        ([molecule(), molecule(edge_attr=None)], "graph 1 has no edge_attr but graph 0 has"),
        ([molecule(), molecule(y=None)], "graph 1 has no y but graph 0 has"),
        ([molecule(), molecule(y=torch.zeros(1, 2))], r"graph 1: y has shape \(1, 2\)"),
        ([molecule(y="high")], "y must be a tensor, got str"),
        ([Data(edge_index=torch.zeros(2, 0).long(), num_nodes=0)], "graph 0 has no nodes"),
        (
            [molecule(edge_label_index=torch.tensor([[3], [4]]), edge_label=torch.ones(1))] * 2,
            r"graph 0: edge_label_index refers to nodes outside 0\.\.2",
        ),
        (
            [molecule(edge_label_index=torch.tensor([[0, 1], [1, 2]]), edge_label=torch.ones(3))],
            "there are 3 edge labels for 2 labelled pairs",
        ),
        ([molecule(edge_label_index=[[0], [1]], edge_label=torch.ones(1))], r"integer tensor of shape \(2, Q\)"),
        ([molecule(edge_label_index=torch.tensor([0, 1]), edge_label=torch.ones(1))], r"graph 0: .* \(2, Q\)"),
        ([molecule(edge_label_index=torch.zeros(2, 1), edge_label=torch.ones(1))], r"integer tensor of shape \(2, Q\)"),
        ([molecule(), molecule(x=np.zeros((3, 1)))], "graph 1: x must be a tensor, got ndarray. Use torch.as_tensor"),
        ([molecule(x=[[1], [0], [2]], num_nodes=3)], "graph 0: x must be a tensor, got list"),
        ([molecule(edge_attr=[1, 1, 2, 2])], "graph 0: edge_attr must be a tensor, got list"),
        ([molecule(edge_index=EDGES.tolist())], r"edge_index must be a tensor of shape \(2, E\), got list"),
        (iter([molecule()]), "expected a list of graphs, got list_iterator"),
        ((molecule() for _ in range(2)), "expected a list of graphs, got generator"),
        (None, "expected a list of graphs, got NoneType"),
    ],
)
def test_bad_graphs(graphs, message):
    with pytest.raises(grit.GritError, match=message):
        grit.PairBatch.from_data_list(graphs)


def test_targets_that_are_neither_of_graphs_nor_of_nodes():
    graphs = [molecule(x=torch.zeros(4, 1), y=torch.ones(3)), molecule(x=torch.zeros(4, 1), y=torch.ones(3))]
    message = r"graph 0: y has 3 rows and the graph 4 nodes: targets of a graph have shape \(1, T\)"
    with pytest.raises(grit.GritError, match=message):
        grit.PairBatch.from_data_list(graphs)
    with pytest.raises(
        grit.GritError, match=r"y has 6 rows for 2 graphs with 8 nodes: targets of a graph have shape \(1, T\)"
    ):
        grit.PairBatch.from_pyg(Batch.from_data_list(graphs))


def test_a_list_or_a_tuple():
    assert_same(grit.PairBatch.from_data_list(tuple(molecules())), grit.PairBatch.from_data_list(molecules()))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"walk_steps": 0}, "walk_steps must be at least 1, got 0"),
        ({"walk_steps": 4.0}, "walk_steps must be a whole number, got 4.0"),
        ({"walk_steps": "4"}, "walk_steps must be a whole number, got '4'"),
        ({"walk_steps": True}, "walk_steps must be a whole number, got True"),
        ({"walk_steps": None}, "walk_steps must be a whole number, got None"),
        ({"dtype": torch.int64}, "dtype must be a floating-point type such as torch.float32, got torch.int64"),
        ({"encoding": "lap"}, "unknown encoding 'lap'; there are rrwp"),
        ({"pairs": "near"}, "pairs must be 'all'"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(grit.GritError, match=message):
        grit.PairBatch.from_data_list([molecule()], **options)
    with pytest.raises(grit.GritError, match=message):
        grit.PairBatch.from_pyg(molecule(), **options)
    with pytest.raises(grit.GritError, match=message):
        grit.BatchSpec(**options)


def test_bad_edges_in_pygs_batch():
    batch = Batch.from_data_list([molecule(), molecule()])
    batch.edge_index = batch.edge_index + 1
    with pytest.raises(grit.GritError, match=r"outside 0\.\.5"):
        grit.PairBatch.from_pyg(batch)
    batch.edge_index = torch.tensor([[0], [3]])
    batch.edge_attr = torch.ones(1).long()
    with pytest.raises(grit.GritError, match="edge 0 -> 3"):
        grit.PairBatch.from_pyg(batch)


def test_parts_must_agree():
    batch = grit.PairBatch.from_data_list([molecule()])
    for name, message in {
        "node_encoding": "node_encoding has 2 rows but the batch has 3 nodes",
        "pair_encoding": "pair_encoding has 8 rows but the batch has 9 pairs",
        "degree": "degree has 2 rows but the batch has 3 nodes",
        "log_degree": "log_degree has 2 rows but the batch has 3 nodes",
    }.items():
        with pytest.raises(grit.GritError, match=f"^{message}"):
            dataclasses.replace(batch, **{name: getattr(batch, name)[1:]})


def test_pairs_must_be_those_of_the_graphs():
    batch = grit.PairBatch.from_data_list(molecules())
    small = grit.PairBatch.from_data_list([molecule()])
    with pytest.raises(grit.GritError, match=r"pairs.row_ptr has 3 rows but the batch has 5 nodes"):
        dataclasses.replace(batch, pairs=small.pairs, pair_encoding=small.pair_encoding)
    unobserved = dataclasses.replace(batch.pairs, edge_pair=batch.pairs.edge_pair[1:])
    with pytest.raises(grit.GritError, match=r"pairs.edge_pair has 6 rows but the batch has 7 edges"):
        dataclasses.replace(batch, pairs=unobserved)
    key = batch.pairs.key.clone()
    key[2] = 3  # the pair (0, 2) of the first graph becomes one of node 0 with a node of the second
    with pytest.raises(grit.GritError, match="a pair joins nodes of two different graphs"):
        dataclasses.replace(batch, pairs=dataclasses.replace(batch.pairs, key=key))


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda batch: pickle.loads(pickle.dumps(batch))])
def test_survives_copying_and_pickling(duplicate):
    batch = grit.PairBatch.from_data_list(with_labels(), walk_steps=4, pairs="edges")
    again = duplicate(batch)
    assert again is not batch
    assert again.x.data_ptr() != batch.x.data_ptr()
    assert_same(again, batch)


def test_as_collate_function_of_torchs_loader():
    collate = partial(grit.PairBatch.from_data_list, walk_steps=4)
    data_list = [*molecules(), molecule(y=torch.tensor([7.0]))]
    loader = torch.utils.data.DataLoader(data_list, batch_size=2, collate_fn=collate, num_workers=1)
    first, last = list(loader)
    assert_same(first, collate(data_list[:2]))
    assert_same(last, collate(data_list[2:]))


def test_graph_and_node_targets_do_not_mix():
    one = Data(edge_index=torch.zeros(2, 0).long(), num_nodes=1, y=torch.ones(3))
    three = Data(edge_index=torch.zeros(2, 0).long(), num_nodes=3, y=torch.ones(1))
    with pytest.raises(grit.GritError, match="graph 0: y has 3 rows and the graph 1 nodes"):
        grit.PairBatch.from_data_list([one, three])


def test_small_integers_as_labelled_pairs():
    labelled = molecule(edge_label_index=torch.tensor([[0], [2]], dtype=torch.int32), edge_label=torch.ones(1))
    assert grit.PairBatch.from_data_list([labelled]).graphs.label_index.dtype == torch.int64
    batch = Batch.from_data_list([labelled, labelled])
    assert grit.PairBatch.from_pyg(batch).graphs.label_index.tolist() == [[0, 3], [2, 5]]
    batch.edge_label_index = [[0], [1]]
    with pytest.raises(grit.GritError, match="the batch: edge_label_index must be an integer tensor"):
        grit.PairBatch.from_pyg(batch)
