import numpy as np
import pytest
import torch

import grit
from grit.datasets import build, from_csv
from grit.datasets.benchmarks.benchmark import BuildOptions
from grit.datasets.molecules.smiles import zinc_graph
from grit.errors import GritError
from grit.recipe.presets import preset_recipe
from grit.training.attention_maps import attention_maps
from grit.training.train import RunOptions, train
from tests.training.small import SMALL, recipe_of, small_recipe, small_store

CPU = RunOptions(device="cpu")
ASPIRIN = "CC(=O)Oc1ccccc1C(=O)O"


@pytest.fixture(scope="module")
def predictor(tmp_path_factory):
    folder = tmp_path_factory.mktemp("attention")
    store = build("zinc-mini", root=folder, options=BuildOptions(processes=1, limit=40))
    train(grit.load_recipe("zinc-mini", *SMALL, "train.epochs=1"), folder / "run", store=store, options=CPU)
    return grit.load(folder / "run")


def test_there_is_a_map_for_every_layer_and_head_whose_rows_sum_to_one(predictor):
    maps = attention_maps(predictor, ASPIRIN)
    assert maps.shape == (2, 2, 13, 13)
    assert maps.sum(-1) == pytest.approx(np.ones((2, 2, 13)), abs=1e-6)
    assert (maps > 0).all()
    assert maps.std(-1).max() > 1e-4


def test_maps_are_what_the_attention_gives_when_called_by_hand(predictor):
    graph = zinc_graph(ASPIRIN, num_labels=21)
    data = grit.PairBatch.from_data_list(
        [
            torch_data(
                x=torch.from_numpy(graph.x).long(),
                edge_index=torch.from_numpy(graph.edge_index).long(),
                edge_attr=torch.from_numpy(graph.edge_attr).long(),
            )
        ],
        4,
    )
    network = predictor.network
    with torch.no_grad():
        x, pair = network.stem(data)
        by_hand = []
        for layer in network.layers:
            by_hand.append(layer.attention(x, pair, data.pairs).weights)  # (P, H)
            x, pair = layer(x, pair, data.pairs, data.log_degree)
    expected = torch.stack(by_hand).view(2, 13, 13, 2).permute(0, 3, 1, 2)
    assert attention_maps(predictor, ASPIRIN) == pytest.approx(expected.numpy(), abs=1e-6)


def torch_data(**fields):
    from torch_geometric.data import Data

    return Data(**fields)


def test_hooks_are_gone_afterwards(predictor):
    attention_maps(predictor, "CCO")
    assert not any(layer.attention._forward_hooks for layer in predictor.network.layers)


def test_pairs_that_sparse_attention_leaves_out_are_zero(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("smiles,y\n" + "".join(f"{'C' * (k % 5 + 1)}O,{k}\n" for k in range(20)))
    store = from_csv(path, targets=["y"], processes=1, split="random")
    recipe = preset_recipe("fast", store.schema, *SMALL, "train.epochs=1", "model.pairs=edges")
    train(recipe, tmp_path / "run", store=store, options=CPU)
    maps = attention_maps(grit.load(tmp_path / "run"), "CCO")
    attended = np.array([[1, 1, 0], [1, 1, 1], [0, 1, 1]], dtype=bool)
    assert (maps[:, :, ~attended] == 0).all()
    assert (maps[:, :, attended] > 0).all()
    assert maps.sum(-1) == pytest.approx(np.ones(maps.shape[:3]), abs=1e-6)


def test_weights_that_nobody_saw_are_an_error(predictor, monkeypatch):
    monkeypatch.setattr(predictor, "predict_piece", lambda piece: None)
    with pytest.raises(GritError, match="layer 0 gave no attention weights"):
        attention_maps(predictor, "CCO")


def test_what_cannot_be_shown_says_why(predictor, tmp_path):
    with pytest.raises(GritError, match=r"cannot read the SMILES 'C\(': not valid SMILES"):
        attention_maps(predictor, "C(")
    with pytest.raises(GritError, match="atom 'Si' is not among the 21"):
        attention_maps(predictor, "C[Si]C")
    train(small_recipe("train.epochs=1"), tmp_path / "graphs", store=small_store(), options=CPU)
    with pytest.raises(GritError, match="trained on 'small', whose graphs were not made from SMILES"):
        attention_maps(grit.load(tmp_path / "graphs"), "CCO")
    recipe = recipe_of("gine", "train.epochs=1")
    train(recipe, tmp_path / "baseline", store=small_store(), options=CPU)
    with pytest.raises(GritError, match="this run trained 'gine'"):
        attention_maps(grit.load(tmp_path / "baseline"), "CCO")
