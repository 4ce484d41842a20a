"""Nodes of one graph in different splits: only those of the split count, in training and in every measurement."""

import csv

import numpy as np
import pytest
import torch

import grit
from grit.batches.loader import Loader
from grit.batches.spec import BatchSpec
from grit.datasets import from_pyg
from grit.errors import GritError
from grit.training.predict_table import predict_stored
from tests.training.small import divided_graph, node_recipe


def altered(data, mask, value):
    """The graph with other targets where the mask is set."""
    other = data.clone()
    other.y = torch.where(mask, value, data.y)
    return other


def weights(run):
    return torch.cat([value.flatten() for value in grit.load(run).network.state_dict().values()])


def test_targets_of_other_nodes_change_nothing(tmp_path):
    data = divided_graph(kind="numbers")
    others = ~(data.train_mask | data.val_mask)  # the best epoch is chosen on val
    first = grit.train(node_recipe(), tmp_path / "first", store=from_pyg(data))
    second = grit.train(node_recipe(), tmp_path / "second", store=from_pyg(altered(data, others, 1e6)))
    assert torch.equal(weights(tmp_path / "first"), weights(tmp_path / "second"))
    assert first["val"] == second["val"]
    assert second["test"]["mae"] > 9e5 > first["test"]["mae"]
    mean = grit.load(tmp_path / "first").data.mean[0]
    assert mean == pytest.approx(float(data.y[data.train_mask].mean()))


def test_targets_of_training_nodes_change_the_model(tmp_path):
    data = divided_graph(kind="numbers")
    grit.train(node_recipe(), tmp_path / "first", store=from_pyg(data))
    grit.train(node_recipe(), tmp_path / "second", store=from_pyg(altered(data, data.train_mask, 3.0)))
    assert not torch.equal(weights(tmp_path / "first"), weights(tmp_path / "second"))


def test_a_split_is_measured_on_its_nodes(tmp_path):
    data = divided_graph()
    store = from_pyg(data, out=tmp_path / "store")
    result = grit.train(node_recipe(), tmp_path / "run", store=store)
    predictor = grit.load(tmp_path / "run")
    (probability,) = predictor.predict([data])
    right = torch.from_numpy(probability[:, 0] > 0.5) == data.y.bool()
    for split in ("train", "val", "test"):
        mask = data[f"{split}_mask"]
        assert predictor.evaluate(store, split)["accuracy"] == pytest.approx(float(right[mask].float().mean()))
        outputs, targets = predictor.predict_store(store, split)
        assert np.allclose(outputs, probability[mask.numpy()], atol=1e-6)
        assert targets[:, 0].tolist() == data.y[mask].tolist()
    assert result["test"]["accuracy"] == predictor.evaluate(store)["accuracy"]


def test_every_node_is_predicted(tmp_path):
    store = from_pyg(divided_graph(), out=tmp_path / "store")
    grit.train(node_recipe(), tmp_path / "run", store=store)
    assert predict_stored(grit.load(tmp_path / "run"), store, tmp_path / "out.csv") == 60
    with (tmp_path / "out.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert [int(line["node"]) for line in lines] == list(range(60))
    assert {line["y_pred"] for line in lines} <= {"0", "1"}


def test_several_divided_graphs(tmp_path):
    graphs = [divided_graph(30, seed) for seed in range(3)]
    store = from_pyg(graphs)
    result = grit.train(node_recipe("train.batch_size=2"), tmp_path / "run", store=store)
    predictor = grit.load(tmp_path / "run")
    right = [
        torch.from_numpy(values[:, 0] > 0.5)[data.test_mask] == data.y[data.test_mask].bool()
        for values, data in zip(predictor.predict(graphs), graphs, strict=True)
    ]
    assert result["test"]["accuracy"] == pytest.approx(float(torch.cat(right).float().mean()))


def test_a_run_goes_on_only_with_the_same_division(tmp_path):
    data = divided_graph()
    recipe = node_recipe()
    grit.train(recipe, tmp_path / "run", store=from_pyg(data))
    (tmp_path / "run" / "result.json").unlink()
    other = data.clone()
    other.train_mask, other.val_mask = data.val_mask, data.train_mask
    with pytest.raises(GritError, match="other data or splits"):
        grit.train(recipe, tmp_path / "run", store=from_pyg(other), resume=True)
    grit.train(recipe, tmp_path / "run", store=from_pyg(data), resume=True)


def test_workers_carry_the_targets_of_the_split(tmp_path):
    graphs = [divided_graph(20, seed) for seed in range(2)]
    store = from_pyg(graphs, out=tmp_path / "store")
    loader = Loader(store, store.split("val"), BatchSpec(3, pairs="edges"), batch_size=1, num_workers=1, split="val")
    known = [~batch.y.isnan()[:, 0] for batch in loader]
    assert all(torch.equal(each, data.val_mask) for each, data in zip(known, graphs, strict=True))


def test_a_loader_is_told_whose_targets_it_carries():
    store, spec = from_pyg(divided_graph()), BatchSpec(3, pairs="edges")
    with pytest.raises(GritError, match="say whose targets the batches carry"):
        Loader(store, store.split("train"), spec, batch_size=1)
    (everything,) = Loader(store, store.split("train"), spec, batch_size=1, split="all")
    assert int((~everything.y.isnan()).sum()) == 45


def test_one_graph_is_encoded_once():
    store = from_pyg(divided_graph())
    loader = Loader(store, store.split("train"), BatchSpec(3, pairs="edges"), batch_size=8, shuffle=True, split="train")
    (first,), (second,) = loader.epoch(0), loader.epoch(5)
    assert first.pair_encoding.data_ptr() == second.pair_encoding.data_ptr()
    assert list(loader.epoch(1, start=1)) == []
