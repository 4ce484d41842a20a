import pytest
import torch

import grit

PUBLISHED = {
    "zinc": 473_473,
    "zinc-full": 473_921,
    "mnist": 102_138,
    "cifar10": 99_486,
    "pattern": 477_953,
    "cluster": 431_670,
    "peptides-func": 443_434,
    "peptides-struct": 449_579,
    "pcqm4mv2": 11_832_321,
}


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_parameter_counts_of_the_released_configurations(name):
    assert grit.build_model(grit.load_recipe(name)).num_parameters == PUBLISHED[name]


def test_the_published_count_of_peptides_struct():
    """438,827 is the model with K = 17 and a head of one layer, with OGB's older chirality table of 4 values."""
    recipe = grit.load_recipe("peptides-struct", "encoding.walk_steps=17", "model.head_layers=1")
    assert grit.build_model(recipe).num_parameters - recipe.model.hidden_dim == 438_827 == recipe.paper.num_parameters


def test_weights_depend_on_the_seed_alone():
    recipe = grit.load_recipe("mnist", "model.num_layers=1")
    torch.manual_seed(3)
    before = torch.get_rng_state()
    first = grit.build_model(recipe).state_dict()
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(4)
    again = grit.build_model(recipe).state_dict()
    assert all(torch.equal(first[name], again[name]) for name in first)
    other = grit.build_model(grit.load_recipe("mnist", "model.num_layers=1", "train.seed=1")).state_dict()
    assert not torch.equal(first["stem.node.linear.weight"], other["stem.node.linear.weight"])


def test_schema_of_ones_own_data():
    schema = grit.GraphSchema(node=grit.Features(kind="none"), edge=grit.Features(kind="none"), num_outputs=3)
    model = grit.build_model(grit.load_recipe("zinc", "model.num_layers=1"), schema)
    assert model.head.linears[-1].out_features == 3


@pytest.mark.parametrize(("recipe", "level"), [("zinc-cin", "node"), ("zinc-gps", "edge"), ("zinc-gsn", "edge")])
def test_a_model_is_not_built_for_what_it_cannot_predict(recipe, level):
    schema = grit.GraphSchema(node=grit.Features(kind="none"), edge=grit.Features(kind="none"), level=level)
    with pytest.raises(grit.GritError, match=rf"the model \w+ predicts for graphs( or nodes)?, not for {level}s"):
        grit.build_model(grit.load_recipe(recipe), schema)
