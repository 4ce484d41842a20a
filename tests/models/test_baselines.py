"""The contract that every entry of BASELINES keeps."""

import numpy as np
import pytest
import torch

from grit.graphs.schema import Features, GraphSchema, TaskSpec
from grit.models import BASELINES
from grit.training.forest import constant_outputs, forest_outputs
from tests.graph_strategies import permuted
from tests.training.small import small_graphs

SCHEMA = GraphSchema(
    node=Features(kind="category", sizes=(21,)), edge=Features(kind="category", sizes=(4,)), num_outputs=2
)


@pytest.mark.parametrize("name", sorted(BASELINES))
class TestContract:
    @pytest.mark.parametrize("level", ["graph", "node"])
    def test_shapes_and_gradients(self, name, level):
        import grit

        batch = grit.PairBatch.from_data_list(small_graphs(5), encoding="none")
        model = BASELINES[name](SCHEMA.model_copy(update={"level": level}))
        predicted = model(batch)
        assert predicted.shape == (5 if level == "graph" else batch.num_nodes, 2)
        predicted.sum().backward()
        assert all(parameter.grad is not None for parameter in model.parameters())

    def test_does_not_depend_on_the_order_of_nodes(self, name):
        import grit

        graph = small_graphs(2)[1]
        model = BASELINES[name](SCHEMA).double().eval()
        permutation = torch.arange(graph.num_nodes).flip(0)
        here, there = (
            model(grit.PairBatch.from_data_list([g], encoding="none", dtype=torch.float64))
            for g in (graph, permuted(graph, permutation))
        )
        torch.testing.assert_close(here, there)


SMILES = ["C" * (k % 8 + 1) + ("O" if k % 2 else "N") for k in range(40)]


def test_constants():
    regression = TaskSpec(kind="regression", targets=("a", "b"), loss="l1", metric="mae")
    assert constant_outputs(regression, np.array([[1.0, np.nan], [3.0, 5.0]]), 2).tolist() == [[2.0, 5.0]] * 2
    classes = TaskSpec(
        kind="multiclass", targets=("a",), classes=("x", "y", "z"), loss="cross_entropy", metric="accuracy"
    )
    assert constant_outputs(classes, np.array([[0.0], [0.0], [2.0], [np.nan]]), 1)[0].tolist() == pytest.approx(
        [2 / 3, 0, 1 / 3]
    )


def classes_of_length():
    return np.array([[float(len(each) > 4)] for each in SMILES[:30]])


def test_forests():
    has_oxygen = np.array([[float("O" in each)] for each in SMILES])
    binary = TaskSpec(kind="binary", targets=("a",), classes=("0", "1"), loss="cross_entropy", metric="auroc")
    outputs = forest_outputs(binary, SMILES[:30], has_oxygen[:30], SMILES[30:])
    assert outputs.shape == (10, 1)
    assert ((outputs > 0.5) == has_oxygen[30:]).all()
    several = TaskSpec(kind="multilabel", targets=("a", "b"), loss="cross_entropy", metric="ap")
    y = np.concatenate([has_oxygen, 1 - has_oxygen], 1)
    y[::5, 1] = np.nan
    outputs = forest_outputs(several, SMILES[:30], y[:30], SMILES[30:])
    assert ((outputs > 0.5) == np.concatenate([has_oxygen, 1 - has_oxygen], 1)[30:]).all()
    classes = TaskSpec(
        kind="multiclass", targets=("a",), classes=("x", "y", "z"), loss="cross_entropy", metric="accuracy"
    )
    outputs = forest_outputs(classes, SMILES[:30], 2 * has_oxygen[:30], SMILES[30:])
    assert outputs.shape == (10, 3)
    assert (outputs[:, 1] == 0).all()
    one, same, other = (
        forest_outputs(binary, SMILES[:30], 1 - classes_of_length(), SMILES[30:], seed) for seed in (1, 1, 2)
    )
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)
    numbers = TaskSpec(kind="regression", targets=("a",), loss="l1", metric="mae")
    length = np.array([[float(len(each))] for each in SMILES])
    assert np.abs(forest_outputs(numbers, SMILES[:30], length[:30], SMILES[30:]) - length[30:]).mean() < 1.0
