import pytest
import torch
from torch_geometric.data import Data

import grit
from grit import memory


def test_what_does_not_fit_says_what_to_change(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda device: 2**30)
    with pytest.raises(
        grit.GritError, match=r"a training step needs at least 3.7 GiB for 1,000,000 node pairs, and 1.0 GiB"
    ):
        memory.check_fits(1_000_000, 4000, torch.device("cpu"), "a training step")
    with pytest.raises(grit.GritError, match=r"train.max_pairs=200000.*model.pairs=edges"):
        memory.check_fits(1_000_000, 4000, torch.device("cpu"), "a training step")
    memory.check_fits(1_000_000, 1000, torch.device("cpu"), "a training step")
    memory.check_fits(1000, 4000, torch.device("cpu"), "a training step")


def test_a_graph_that_is_too_large_is_an_error_before_it_is_built():
    graph = Data(edge_index=torch.tensor([[0], [1]]), num_nodes=3_000_000)
    with pytest.raises(grit.GritError, match=r"list of all pairs needs at least .* for 9,000,000,000,000 node pairs"):
        grit.PairBatch.from_data_list([graph], walk_steps=2)


def test_a_model_asks_before_it_runs(monkeypatch):
    recipe = grit.load_recipe("zinc", "model.num_layers=2")
    model = grit.build_model(recipe)
    nodes = 1200
    graph = Data(x=torch.zeros(nodes, 1).long(), edge_index=torch.tensor([[0], [1]]), edge_attr=torch.ones(1).long())
    batch = grit.PairBatch.from_data_list([graph], walk_steps=21)
    monkeypatch.setattr(memory, "available_memory", lambda device: 2**30)
    with pytest.raises(grit.GritError, match="a training step needs at least 1.4 GiB for 1,440,000 node pairs"):
        model(batch)


def test_available_memory():
    free = memory.available_memory(torch.device("cpu"))
    assert free is None or 0 < free < 2**50
    assert memory.available_memory(torch.device("meta")) is None
