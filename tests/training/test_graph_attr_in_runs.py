"""Runs on graphs that carry numbers of their own: trained, resumed, loaded, and used."""

import numpy as np
import pytest
import torch

import grit
from grit.datasets import from_pyg
from grit.errors import GritError, Interrupted
from grit.training.checkpoint import read_checkpoint
from grit.training.predictor import load
from grit.training.train import train
from tests.training.small import small_graphs, small_recipe

SPLITS = {"train": range(50), "val": range(50, 60), "test": range(60, 70)}


def described(seed=0, hint=True):
    """Graphs whose target is what the first of their numbers says; of the second some are missing, the third is constant."""
    rng = np.random.default_rng(seed)
    graphs = small_graphs()
    for number, graph in enumerate(graphs):
        value = float(rng.normal())
        missing = float("nan") if number % 3 == 0 else float(rng.normal(50, 9))
        graph.y = torch.tensor([100 + 20 * value])
        graph.graph_attr = torch.tensor([[value if hint else 0.0, missing, 4.0]])
    return graphs


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    run = tmp_path_factory.mktemp("runs") / "run"
    store = from_pyg(described(), splits=SPLITS, name="described")
    return train(small_recipe("train.epochs=80", "train.lr=1e-2"), run, store=store), run, store


def test_a_model_learns_from_them(trained, tmp_path):
    result, _, _ = trained
    blind = from_pyg(described(hint=False), splits=SPLITS)
    without = train(small_recipe("train.epochs=80", "train.lr=1e-2"), tmp_path / "blind", store=blind)
    assert result["test"]["mae"] < 0.5 * without["test"]["mae"]


def test_what_is_known_of_them_is_kept_with_the_weights(trained):
    _, run, store = trained
    weights = read_checkpoint(run / "checkpoints" / "best.safetensors").under("model.")
    values = store.graph_attr(store.split("train"))
    np.testing.assert_allclose(weights["joined.mean"], np.nanmean(values, axis=0), rtol=1e-5, atol=1e-6)
    assert weights["joined.scale"][2] == 0.0


def test_a_predictor_reads_them(trained):
    _, run, store = trained
    predictor = load(run)
    graphs = described()
    stored, _ = predictor.predict_store(store, "test")
    np.testing.assert_allclose(predictor.predict(graphs[60:]), stored, rtol=1e-5)
    graphs[60].graph_attr[0, 0] += 1.0
    assert abs(predictor.predict(graphs[60:61]) - stored[0]) > 1e-3
    assert predictor.embed(graphs[:2]).shape == (2, 8)


def test_graphs_without_them_are_refused(trained):
    _, run, _ = trained
    predictor = load(run)
    plain = small_graphs()[:2]
    with pytest.raises(GritError, match=r"reads 3 numbers of each graph \(graph_attr\), the batch has 0"):
        predictor.predict(plain)
    with pytest.raises(GritError, match="other features or targets"):
        predictor.predict_store(from_pyg(small_graphs(), splits=SPLITS))


def test_a_run_without_them_refuses_graphs_that_carry_them(tmp_path):
    train(small_recipe("train.epochs=1"), tmp_path / "run", store=from_pyg(small_graphs(), splits=SPLITS))
    with pytest.raises(GritError, match="reads 0 numbers of each graph .* the batch has 3"):
        load(tmp_path / "run").predict(described()[:2])


def test_an_interrupted_run_ends_with_the_same_bits(tmp_path):
    store = from_pyg(described(), splits=SPLITS)

    def stop(event):
        if event.epoch == 1 and event.batch == 2:
            import os
            import signal

            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Interrupted):
        train(small_recipe(), tmp_path / "cut", store=store, watch=stop)
    train(small_recipe(), tmp_path / "cut", store=store, resume=True)
    train(small_recipe(), tmp_path / "whole", store=store)
    cut, whole = (
        read_checkpoint(tmp_path / name / "checkpoints" / "last.safetensors").under("model.")
        for name in ("cut", "whole")
    )
    assert cut.keys() == whole.keys()
    assert all(torch.equal(cut[name], whole[name]) for name in cut)


def test_such_a_model_is_not_exported(trained, tmp_path):
    from grit.export.export import export

    with pytest.raises(GritError, match="reads numbers of whole graphs .* cannot be exported"):
        export(load(trained[1]), tmp_path / "model.pt2")


def test_a_new_run_begins_with_the_weights_of_one_that_read_none(trained, tmp_path):
    """The map of the numbers is new; the head that reads its result fits."""
    train(small_recipe("train.epochs=1"), tmp_path / "plain", store=from_pyg(small_graphs(), splits=SPLITS))
    said = []
    train(small_recipe("train.epochs=1"), tmp_path / "new", store=trained[2], init=tmp_path / "plain", say=said.append)
    assert any("not taken, joined: not in the file" in line for line in said)


def test_the_public_model_says_what_it_needs():
    store = from_pyg(described(), splits=SPLITS)
    model = grit.Grit(schema=store.schema, num_layers=1, hidden_dim=8, num_heads=2, walk_steps=4)
    batch = grit.PairBatch.from_data_list(described()[:3], 4)
    assert model(batch).shape == (3, 1)
