"""Batches, tasks and numbers at their edges: a last graph of one node, a task that does not fit, the ends of a number type."""

import pytest
import torch
from torch_geometric.data import Data

import grit
from grit.datasets import from_pyg
from grit.graphs.convert import pack_batch
from grit.graphs.graph_files import read_graph
from tests.training.small import small_store


def test_the_last_graph_of_a_batch_may_have_one_node():
    nodes = torch.tensor([0, 0, 0, 1])
    found = pack_batch(Data(x=torch.arange(4)[:, None], edge_index=torch.tensor([[0, 1], [1, 0]]), batch=nodes))
    assert len(found) == 2
    assert found.node_ptr.tolist() == [0, 3, 4]
    assert found.edge_ptr.tolist() == [0, 2, 2]


def test_a_task_with_another_number_of_outputs():
    store = small_store()
    task = store.task.model_copy(update={"targets": ("a", "b")})
    with pytest.raises(grit.GritError, match="the task has 2 outputs, the data 1"):
        store.with_task(task)


@pytest.mark.parametrize(
    "values", [(-1000, 5, 7), (0, 3, 255), (0, 3, 256), (-129, 0, 1), (-128, 127, 0), (7, -40_000, 2)]
)
def test_whole_numbers_of_any_size_and_sign_come_back(tmp_path, values):
    graphs = [
        Data(edge_index=torch.zeros(2, 0).long(), num_nodes=2, y=torch.tensor([[value, -value]])) for value in values
    ]
    store = from_pyg(graphs, task="regression", splits={"train": range(3)}, out=tmp_path / "store")
    assert store.targets(store.split("train")).tolist() == [[value, -value] for value in values]


@pytest.mark.parametrize("line", ["a", "a,", ",b", "a,,2"])
def test_an_edge_without_its_second_node(tmp_path, line):
    (tmp_path / "g.csv").write_text(f"x,y\n{line}\n")
    with pytest.raises(grit.GritError, match="line 2: expected the names of two nodes"):
        read_graph(tmp_path / "g.csv", 10)
