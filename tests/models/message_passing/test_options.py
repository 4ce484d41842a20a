"""Options that all of these models have: dropout and pooling take effect."""

import pytest
import torch

from grit.models import MODELS
from tests.models.by_hand import GRAPHS, SCHEMA, batch_of
from tests.models.message_passing.test_expressiveness import NAMES


def built(name, **options):
    torch.manual_seed(0)
    statistics = {"degree_histogram": [0, 5, 10, 5]} if name == "pna" else {}
    return MODELS[name].build(SCHEMA, **statistics, num_layers=2, **options).double()


@pytest.mark.parametrize("name", NAMES)
def test_dropout_acts_in_training_alone(name):
    batch, model = batch_of(GRAPHS), built(name, dropout=0.5)
    assert not torch.equal(model(batch), model(batch))
    model.eval()
    assert torch.equal(model(batch), model(batch))
    sure = built(name)
    assert torch.equal(sure(batch), sure(batch))


@pytest.mark.parametrize("name", [name for name in NAMES if "virtual" not in name])  # a virtual node counts nodes
@torch.no_grad()
def test_a_mean_does_not_depend_on_how_often_a_graph_is_repeated_and_a_sum_does(name):
    """Two copies of a graph as one graph."""
    graph = GRAPHS[0]
    twice = graph.clone()
    twice.x = graph.x.repeat(2, 1)
    twice.edge_index = torch.cat([graph.edge_index, graph.edge_index + graph.num_nodes], 1)
    twice.edge_attr = graph.edge_attr.repeat(2)

    def gap(pooling):
        one, two = built(name, pooling=pooling).eval()(batch_of([graph, twice]))
        return float((one - two).abs().max())

    # PNA scales by 1/√n, as its authors do.
    assert (gap("mean") < 1e-12) == (name != "pna")
    assert gap("sum") > 1e-6
