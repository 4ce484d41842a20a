"""Graphs with train_mask, val_mask and test_mask: the nodes of each are divided."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from grit.datasets import from_pyg
from grit.errors import GritError
from grit.graphs.store import GraphStore
from tests.training.small import divided_graph


def triangle(**masks):
    """Three nodes, one in each mask unless said otherwise."""
    each = dict(zip(("train_mask", "val_mask", "test_mask"), torch.eye(3).bool(), strict=True))
    return Data(
        x=torch.rand(3, 2),
        edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]]),
        y=torch.tensor([0, 1, 0]),
        **{**each, **masks},
    )


@pytest.fixture(params=["memory", "disk"])
def place(request, tmp_path):
    return None if request.param == "memory" else tmp_path / "store"


def test_every_split_reads_the_graph_and_sees_its_own_targets(place):
    data = divided_graph()
    store = from_pyg(data, out=place)
    assert store.divides_nodes
    for split in ("train", "val", "test"):
        mask = data[f"{split}_mask"]
        assert store.split(split).tolist() == [0]
        assert store.split_size(split) == int(mask.sum())
        graphs = store.gather([0], split)
        assert graphs.num_nodes == 60
        assert torch.equal(graphs.y[mask, 0].long(), data.y[mask])
        assert graphs.y[~mask].isnan().all()
        assert np.array_equal(store.targets(store.split(split), split)[:, 0], data.y[mask].numpy())


def test_several_graphs_are_in_the_splits_that_their_nodes_are_in(place):
    none = torch.zeros(3).bool()
    graphs = [triangle(), triangle(train_mask=none), triangle(val_mask=none, test_mask=none)]
    store = from_pyg(graphs, out=place)
    assert {name: members.tolist() for name, members in store.splits.items()} == {
        "train": [0, 2],
        "val": [0, 1],
        "test": [0, 1],
    }
    assert [store.split_size(name) for name in ("train", "val", "test")] == [2, 2, 2]


def test_a_stored_division_is_what_was_given(tmp_path):
    graph = divided_graph()
    from_pyg(graph, out=tmp_path / "store")
    store = GraphStore.open(tmp_path / "store")
    store.verify()
    assert store.gather([0], "val").y.isnan().sum() == int((~graph.val_mask).sum())


def test_a_label_of_a_node_in_no_mask_makes_no_class():
    data = divided_graph()
    unknown = ~(data.train_mask | data.val_mask | data.test_mask)
    data.y = torch.where(unknown, -1, data.y)
    store = from_pyg(data)
    assert store.task.classes == ("0", "1")
    assert torch.equal(store.gather([0]).y.isnan()[:, 0], unknown)


def test_columns_of_masks():
    data = divided_graph()
    for name in ("train_mask", "val_mask"):  # the test mask is one for all, as in WikiCS
        data[name] = torch.stack([torch.zeros(60).bool(), data[name]], 1)
    with pytest.raises(GritError, match=r"train_mask has shape \(60, 2\).*mask_column=0.* to mask_column=1"):
        from_pyg(data)
    assert from_pyg(data, mask_column=1).split_size("train") == 15
    with pytest.raises(GritError, match=r"columns 0 to 1, got mask_column=2"):
        from_pyg(data, mask_column=2)
    with pytest.raises(GritError, match="mask_column=1, but its masks have a single column"):
        from_pyg(divided_graph(), mask_column=1)


def test_masks_of_0_and_1():
    data, counted = divided_graph(), divided_graph()
    for name in ("train_mask", "val_mask", "test_mask"):
        counted[name] = counted[name].long()
    for name in ("train", "val", "test"):
        assert torch.equal(from_pyg(counted).gather([0], name).y.isnan(), from_pyg(data).gather([0], name).y.isnan())


def test_splits_that_are_given_count_whole_graphs():
    store = from_pyg([triangle(), triangle(), triangle()], splits={"train": [0], "val": [1], "test": [2]})
    assert not store.divides_nodes
    assert store.split_size("train") == 1
    assert not store.gather([0], "train").y.isnan().any()


def test_masks_say_nothing_about_targets_of_graphs():
    graphs = []
    for number in range(10):
        graph = triangle()
        graph.y = torch.tensor([[number + 0.5]])
        graphs.append(graph)
    assert not from_pyg(graphs).divides_nodes


@pytest.mark.parametrize(
    ("masks", "message"),
    [
        ({"val_mask": torch.tensor([1, 1, 0]).bool()}, "node 0 is in train_mask and in val_mask"),
        ({"test_mask": torch.tensor([1, 0]).bool()}, r"test_mask has shape \(2,\) and the graph 3 nodes"),
        ({"train_mask": torch.tensor([0, 1, 2])}, "node numbers are no mask"),
        ({"train_mask": [True, False, False]}, "must be a tensor of True and False, got list"),
    ],
)
def test_masks_that_cannot_be(masks, message):
    with pytest.raises(GritError, match=f"graph 1: .*{message}"):
        from_pyg([triangle(), triangle(**masks)])


def test_masks_that_are_missing():
    partly, without = triangle(), triangle()
    del partly.val_mask
    for name in ("train_mask", "val_mask", "test_mask"):
        del without[name]
    with pytest.raises(GritError, match="graph 0 carries train_mask, test_mask but no val_mask"):
        from_pyg(partly)
    with pytest.raises(GritError, match="graph 1 carries no train_mask"):
        from_pyg([triangle(), without])
    with pytest.raises(GritError, match="mask_column is for graphs"):
        from_pyg([without], mask_column=0)
    nothing = torch.zeros(3).bool()
    with pytest.raises(GritError, match="all of them are False"):
        from_pyg(triangle(train_mask=nothing, val_mask=nothing, test_mask=nothing))


def test_what_is_said(tmp_path):
    said = []
    from_pyg(divided_graph(), out=tmp_path / "store", say=said.append)
    assert said[0] == ("60 nodes of one graph: 15 in train, 15 in val, 15 in test, 15 in none; binary of 2 classes.")
    assert said[1] == f"Next: grit train own-nodes dataset={tmp_path / 'store'}"


def test_one_graph_without_masks_is_told_of_them():
    data = triangle()
    for name in ("train_mask", "val_mask", "test_mask"):
        del data[name]
    with pytest.raises(GritError, match=r"Divide the nodes: set data.train_mask.*RandomNodeSplit"):
        from_pyg(data)
    assert len(from_pyg(data, splits={})) == 1  # to be predicted
