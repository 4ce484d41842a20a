"""Batches and tasks at their edges: a last graph of one node, a task that does not fit."""

import pytest
import torch
from torch_geometric.data import Data

import grit
from grit.graphs.convert import pack_batch
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
