import pytest
import torch
from torch_geometric.transforms import AddRandomWalkPE

import grit
from grit.datasets import DATASETS
from grit.models.transformers.gps import Gps, return_probabilities
from tests.training.small import small_graphs


def test_the_published_number_of_parameters():
    """GraphGPS provides for 28 atom types, as ZINC-full has them."""
    model = Gps(DATASETS["zinc-full"].schema)
    assert sum(parameter.numel() for parameter in model.parameters()) == 423_717


def test_return_probabilities_are_those_of_pyg():
    graphs = small_graphs(6)[1:]
    ours = return_probabilities(grit.PairBatch.from_data_list(graphs, encoding="none", pairs="edges"))
    theirs = torch.cat([AddRandomWalkPE(20)(graph.clone()).random_walk_pe for graph in graphs])
    torch.testing.assert_close(ours, theirs)


def test_reads_any_batch_of_the_same_graphs():
    graphs = small_graphs(4)
    model = Gps(DATASETS["zinc"].schema, num_layers=2).eval()
    bare = grit.PairBatch.from_data_list(graphs, encoding="none", pairs="edges")
    full = grit.PairBatch.from_data_list(graphs, 5, encoding="rrwp", pairs="all")
    torch.testing.assert_close(model(bare), model(full))


def test_attention_dropout_only_in_training():
    batch = grit.PairBatch.from_data_list(small_graphs(4), encoding="none")
    model = Gps(DATASETS["zinc"].schema, num_layers=1)
    assert not torch.equal(model(batch), model(batch))
    model.eval()
    assert torch.equal(model(batch), model(batch))
    free = Gps(DATASETS["zinc"].schema, num_layers=1, attention_dropout=0.0)
    assert torch.equal(free(batch), free(batch))


def test_the_number_of_heads_matters():
    """The weights are the same, so that only what is computed can differ."""
    batch = grit.PairBatch.from_data_list(small_graphs(4), encoding="none")
    one, four = (Gps(DATASETS["zinc"].schema, num_layers=1, num_heads=heads).eval() for heads in (1, 4))
    four.load_state_dict(one.state_dict())
    assert not torch.allclose(one(batch), four(batch))


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["model.num_layers=0"], "model.num_layers: got 0"),
        (["model.hidden_dim=28"], "model: hidden_dim must be more than 28"),
        (["model.num_heads=5"], "model: hidden_dim 64 is not divisible by num_heads 5"),
        (["model.attention_dropout=1.0"], "model.attention_dropout: got 1.0"),
    ],
)
def test_options_that_cannot_be(overrides, message):
    with pytest.raises(grit.GritError, match=message):
        grit.load_recipe("zinc", "model.name=gps", *overrides)
