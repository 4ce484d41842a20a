import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import grit
from grit.export.program import TensorProgram, broken_rules, node_layout, pair_batch
from grit.graphs.convert import pack
from grit.learning.task import Task
from tests.graph_strategies import featured_graphs
from tests.training.small import recipe_of, small_recipe, small_store


@given(
    st.lists(featured_graphs(), min_size=1, max_size=5),
    st.sampled_from(["all", "edges", "khop-2", "khop-4"]),
    st.sampled_from(["rrwp", "rwse", "none"]),
    st.integers(1, 6),
)
def test_it_is_the_batch_that_the_model_was_trained_on(data_list, pairs, encoding, walk_steps):
    graphs = pack(data_list)
    spec = grit.BatchSpec(walk_steps, encoding, pairs, torch.float64)
    wanted = grit.PairBatch.from_graphs(graphs, spec)
    got = pair_batch(node_layout(graphs.graph_of_node), graphs.edge_index, graphs.x, graphs.edge_attr, spec)
    for name in ("query", "key", "row_ptr", "edge_pair"):
        assert torch.equal(getattr(got.pairs, name), getattr(wanted.pairs, name)), name
    for name in ("node_ptr", "edge_ptr", "graph_of_node", "x", "edge_attr"):
        assert torch.equal(getattr(got.graphs, name), getattr(wanted.graphs, name)), name
    assert torch.equal(got.degree, wanted.degree)
    for name in ("node_encoding", "pair_encoding", "log_degree"):
        torch.testing.assert_close(getattr(got, name), getattr(wanted, name), rtol=0, atol=1e-12)


@given(st.lists(featured_graphs(), min_size=1, max_size=4))
def test_sound_input_breaks_no_rule(data_list):
    graphs = pack(data_list)
    assert broken_rules(node_layout(graphs.graph_of_node), graphs.edge_index, graphs.x, graphs.edge_attr) == 0


@pytest.mark.parametrize(
    ("edges", "graph_of_node", "x"),
    [
        ([[0], [2]], [0, 0, 1], None),  # an edge between two graphs
        ([[0], [-1]], [0, 0, 0], None),
        ([[0], [1]], [1, 1, 1], None),  # not from 0
        ([[0], [1]], [0, 0, 2], None),  # a graph without nodes
        ([[1], [1]], [0, 1, 0], None),
        ([[0], [1]], [0, 0, 0], torch.tensor([[1], [-1], [0]])),
        ([[0], [1]], [0, 0, 0], torch.tensor([[1.0], [torch.nan], [0.0]])),
        ([[0], [1]], [0, 0, 0], torch.tensor([[1]])),  # one row for all
    ],
)
def test_broken_rules_are_found(edges, graph_of_node, x):
    assert broken_rules(node_layout(torch.tensor(graph_of_node)), torch.tensor(edges), x, None) > 0


def test_graphs_without_features():
    layout = node_layout(torch.tensor([0, 1, 1]))
    batch = pair_batch(layout, torch.zeros(2, 0, dtype=torch.int64), None, None, grit.BatchSpec(3, dtype=torch.float64))
    assert batch.graphs.x.shape == (3, 0)
    assert batch.graphs.edge_attr.shape == (0, 0)
    assert batch.num_pairs == 5


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (
            small_recipe("encoding.name=laplacian"),
            "the encoding 'laplacian' cannot be exported; those with rrwp, rwse, none can",
        ),
        (recipe_of("gine"), "only GRIT can be exported; this run trained 'gine'"),
    ],
)
def test_what_cannot_be_exported(recipe, message):
    from grit.recipe.builder import build_model

    store = small_store()
    with pytest.raises(grit.GritError, match=message):
        TensorProgram(build_model(recipe, store.schema), recipe, Task(store.task, np.zeros(1), np.ones(1)))


def test_predictions_for_edges_cannot_be_exported():
    store, recipe = small_store(), small_recipe("model.pooling=none")
    model = grit.build_model(recipe, store.schema.model_copy(update={"level": "edge"}))
    with pytest.raises(grit.GritError, match="predicts for each edge cannot be exported"):
        TensorProgram(model, recipe, Task(store.task))
