import pytest
import torch
from torch_geometric.data import Data

import grit
from grit.graphs.schema import Features
from grit.nn.stem import FEATURE_ENCODERS, Stem

EXAMPLES = {
    "numeric": (Features(kind="numeric", sizes=(2,)), torch.tensor([[0.5, 1.0], [2.0, -1.0]])),
    "category": (Features(kind="category", sizes=(4,)), torch.tensor([[3], [0]])),
    "columns": (Features(kind="columns", sizes=(4, 2)), torch.tensor([[3, 0], [0, 1]])),
    "none": (Features(kind="none"), torch.zeros(2, 0)),
}


@pytest.mark.parametrize("kind", sorted(FEATURE_ENCODERS))
def test_every_feature_encoder(kind):
    torch.manual_seed(0)
    features, values = EXAMPLES[kind]
    encoder = FEATURE_ENCODERS[kind](features, 8)
    out = encoder(values)
    assert out.shape == (2, 8)
    assert torch.equal(out[0], out[1]) == (kind == "none")
    out.sum().backward()
    assert all(parameter.grad is not None for parameter in encoder.parameters())


def assert_uniform(weight, bound):
    """Entries are drawn from U(-bound, bound)."""
    assert 0.95 * bound < weight.abs().max() <= bound
    assert abs(weight.std().item() / (bound / 3**0.5) - 1) < 4 / weight.numel() ** 0.5


def assert_standard_normal(weight):
    """Entries are drawn from N(0, 1)."""
    assert abs(weight.std().item() - 1) < 4 / (2 * weight.numel()) ** 0.5
    assert abs((weight.abs() < 1).float().mean().item() - 0.6827) < 4 * (0.6827 * 0.3173 / weight.numel()) ** 0.5


def test_columns_start_as_ogbs_encoders():
    """xavier_uniform of every table by itself: bounds sqrt(6 / (rows + D))."""
    torch.manual_seed(0)
    sizes, dim = (119, 5, 2), 96
    encoder = FEATURE_ENCODERS["columns"](Features(kind="columns", sizes=sizes), dim)
    for size, table in zip(sizes, encoder.embeddings, strict=True):
        assert table.weight.shape == (size, dim)
        assert_uniform(table.weight, (6 / (size + dim)) ** 0.5)


def test_other_encoders_start_as_torch_has_them():
    torch.manual_seed(0)
    assert_standard_normal(FEATURE_ENCODERS["category"](Features(kind="category", sizes=(28,)), 96).embedding.weight)
    assert_standard_normal(FEATURE_ENCODERS["none"](Features(kind="none"), 2048).embedding.weight)
    linear = FEATURE_ENCODERS["numeric"](Features(kind="numeric", sizes=(7,)), 512).linear
    assert_uniform(linear.weight, 7**-0.5)
    assert_uniform(linear.bias, 7**-0.5)


def test_encoding_maps_start_by_xavier_and_have_no_bias():
    torch.manual_seed(0)
    nothing, dim = Features(kind="none"), 256
    stem = Stem(node=nothing, edge=nothing, node_encoding_dim=21, pair_encoding_dim=16, hidden_dim=dim, max_degree=150)
    assert stem.node_encoding.bias is None
    assert stem.pair_encoding.bias is None
    assert_uniform(stem.node_encoding.weight, (6 / (21 + dim)) ** 0.5)
    assert_uniform(stem.pair_encoding.weight, (6 / (16 + dim)) ** 0.5)
    assert_standard_normal(stem.degree.weight)
    assert stem.degree.weight.shape == (151, dim)


def batch_of(x, edge_attr, edge_index=((0, 1, 1), (1, 0, 0)), walk_steps=3, **options):
    data = Data(x=x, edge_index=torch.tensor(edge_index), edge_attr=edge_attr, num_nodes=2)
    return grit.PairBatch.from_data_list([data], walk_steps=walk_steps, **options)


def stem_for(node="category", edge="category", walk_steps=3, **options):
    return Stem(
        node=EXAMPLES[node][0],
        edge=EXAMPLES[edge][0],
        node_encoding_dim=walk_steps,
        pair_encoding_dim=walk_steps,
        hidden_dim=8,
        **options,
    )


def test_where_features_and_encodings_go():
    torch.manual_seed(0)
    stem = stem_for()
    batch = batch_of(torch.tensor([[3], [0]]), torch.tensor([1, 2, 3]))  # 0 -> 1, and 1 -> 0 twice
    x, pair = stem(batch)
    values = grit.rrwp(batch.graphs.edge_index, 2, 3)
    table, bonds = stem.node.embedding.weight, stem.edge.embedding.weight
    torch.testing.assert_close(x[0], table[3] + stem.node_encoding.weight @ values[0, 0])
    walk = stem.pair_encoding.weight @ values.view(4, 3).t()  # (8, 4): pairs 00, 01, 10, 11
    torch.testing.assert_close(pair[0], walk[:, 0])
    torch.testing.assert_close(pair[1], walk[:, 1] + bonds[2] + bonds[3])  # query 0, key 1: the edges 1 -> 0
    torch.testing.assert_close(pair[2], walk[:, 2] + bonds[1])
    torch.testing.assert_close(pair[3], walk[:, 3])


def test_degree_encoding_shares_its_last_row():
    torch.manual_seed(0)
    stem = stem_for(max_degree=1)
    x, _ = stem(batch_of(torch.tensor([[0], [0]]), torch.tensor([1, 1, 1])))  # degrees 1 and 2
    plain = stem_for()
    plain.load_state_dict({name: value for name, value in stem.state_dict().items() if name != "degree.weight"})
    without, _ = plain(batch_of(torch.tensor([[0], [0]]), torch.tensor([1, 1, 1])))
    torch.testing.assert_close(x - without, stem.degree.weight[1].expand(2, -1))


def test_no_pair_encoding_leaves_edges_alone():
    stem = Stem(
        node=EXAMPLES["none"][0], edge=EXAMPLES["none"][0], node_encoding_dim=0, pair_encoding_dim=0, hidden_dim=8
    )
    x, pair = stem(batch_of(None, None, encoding="none"))
    assert torch.equal(x[0], x[1])
    assert pair[0].abs().sum() == pair[3].abs().sum() == 0
    torch.testing.assert_close(pair[1], 2 * pair[2])


@pytest.mark.parametrize(
    ("kinds", "x", "edge_attr", "message"),
    [
        (
            {},
            torch.tensor([[4], [0]]),
            torch.ones(3).long(),
            r"node features \(x\), column 0, hold the category 4; .* 0 to 3",
        ),
        ({}, torch.tensor([[0], [-1]]), torch.ones(3).long(), "hold the category -1"),
        (
            {},
            torch.tensor([[0], [1]]),
            torch.full((3,), 9),
            r"edge features \(edge_attr\), column 0, hold the category 9",
        ),
        ({}, torch.tensor([[0.0], [1.0]]), torch.ones(3).long(), r"are torch.float32, .* pass integers \(.long\(\)\)"),
        ({"node": "numeric"}, torch.ones(2, 2).long(), torch.ones(3).long(), r"pass floating-point numbers"),
        (
            {"node": "numeric"},
            torch.ones(2, 3),
            torch.ones(3).long(),
            "have 3 columns, the model was built for 2 numbers",
        ),
        ({"edge": "none"}, torch.tensor([[0], [1]]), torch.ones(3).long(), "have 1 columns, .* no features"),
        ({}, torch.tensor([[0], [1]]), None, "have 0 columns, the model was built for one category of 4"),
    ],
)
def test_features_the_model_was_not_built_for(kinds, x, edge_attr, message):
    with pytest.raises(grit.GritError, match=message):
        stem_for(**kinds)(batch_of(x, edge_attr))


def test_encodings_the_model_was_not_built_for():
    batch = batch_of(torch.tensor([[0], [1]]), torch.ones(3).long(), walk_steps=5)
    with pytest.raises(grit.GritError, match=r"width 5 \(nodes\) and 5 \(pairs\), the model was built for 3 and 3"):
        stem_for()(batch)
