import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

import grit
from grit.datasets import DATASETS
from grit.graphs.convert import pack
from grit.graphs.schema import Features, GraphSchema
from grit.models import TokenGtLap, TokenGtOrf
from grit.models.transformers.tokengt_base import orthonormal
from grit.models.transformers.tokengt_layer import TokenGtLayer
from tests.training.small import small_graphs

SCHEMA = GraphSchema(
    node=Features(kind="category", sizes=(21,)), edge=Features(kind="category", sizes=(4,)), num_outputs=2
)
SMALL = {"num_layers": 1, "hidden_dim": 6, "ffn_dim": 5, "num_heads": 2}


def empty_graphs(*sizes):
    return pack([Data(edge_index=torch.empty(2, 0).long(), num_nodes=n) for n in sizes])


def batch_of(graphs, encoding="none", walk_steps=3):
    return grit.PairBatch.from_data_list(graphs, walk_steps, encoding=encoding, pairs="edges", dtype=torch.float64)


def model_of(kind=TokenGtLap, **options):
    torch.manual_seed(0)
    own = {"walk_steps": 3} if kind is TokenGtLap else {"identifier_dim": 9}
    model = kind(SCHEMA, **own, **SMALL, **options).double().eval()
    for (
        parameter
    ) in model.parameters():  # the initial weights are so small that hardly anything but a norm would be seen
        parameter.data.normal_()
    return model


def norm(x, module):
    centred = (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, unbiased=False, keepdim=True) + 1e-5)
    return centred * module.weight + module.bias


def test_the_model_by_hand():
    """Token by token: the graph token, the null token, every node, every listed edge."""
    model = model_of()
    (layer,) = model.layers
    for graph in small_graphs(4)[1:]:
        batch = batch_of([graph], "laplacian")
        with torch.no_grad():
            found = model(batch)[0]
            vectors = batch.node_encoding[:, :3]
            tokens = [*model.special.weight]
            for v, atom in enumerate(graph.x[:, 0]):
                pair = torch.cat([vectors[v], vectors[v]])
                tokens.append(model.node.embedding.weight[atom] + model.identifier.weight @ pair + model.kind.weight[1])
            for (u, v), bond in zip(graph.edge_index.T.tolist(), graph.edge_attr, strict=True):
                pair = torch.cat([vectors[u], vectors[v]])
                tokens.append(model.edge.embedding.weight[bond] + model.identifier.weight @ pair + model.kind.weight[0])
            assert len(tokens) == graph.num_nodes + graph.num_edges + 2
            x = norm(torch.stack(tokens), model.stem[0])
            normed = norm(x, layer.norm)
            heads = []
            for head in (slice(0, 3), slice(3, 6)):
                q, k, v = (each(normed)[:, head] for each in (layer.query, layer.key, layer.value))
                heads.append(torch.softmax(q @ k.T / 3**0.5, 1) @ v)
            x = x + layer.out[0](torch.cat(heads, 1))
            x = x + layer.ffn[4](F.gelu(layer.ffn[1](norm(x, layer.ffn[0]))))
            wanted = model.head[3](norm(F.gelu(model.head[0](x[0])), model.head[2]))
        torch.testing.assert_close(found, wanted)


@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=4), seed=st.integers(0, 99))
@settings(max_examples=30)
def test_random_identifiers_are_orthonormal(sizes, seed):
    graphs, drawn = empty_graphs(*sizes), torch.Generator().manual_seed(seed)
    found = orthonormal(torch.randn(sum(sizes), 9, dtype=torch.float64, generator=drawn), graphs)
    for n, rows in zip(sizes, found.split(sizes), strict=True):
        torch.testing.assert_close(rows @ rows.T, torch.eye(n, dtype=torch.float64))
        assert not rows[:, n:].any()


def test_in_large_graphs_identifiers_have_length_1():
    """20 nodes, 9 dimensions: what is left of orthonormal rows is that they fill the space evenly."""
    found = orthonormal(torch.randn(20, 9).double(), empty_graphs(20))
    torch.testing.assert_close(found.norm(dim=1), torch.ones(20).double())
    assert torch.linalg.matrix_rank(found) == 9


def test_random_identifiers_do_not_depend_on_the_other_graphs():
    drawn = torch.randn(12, 9).double()
    together = orthonormal(drawn, empty_graphs(3, 7, 2))
    alone = [orthonormal(part, empty_graphs(len(part))) for part in drawn.split([3, 7, 2])]
    torch.testing.assert_close(together, torch.cat(alone))


def test_random_identifiers_are_uniform():
    """No node and no direction is preferred: the mean of a row is 0, the mean of its square 1/n, at every place alike."""
    torch.manual_seed(0)
    count = 4000
    found = orthonormal(torch.randn(3 * count, 3).double(), empty_graphs(*[3] * count)).view(count, 3, 3)
    assert found.mean(0).abs().max() < 6 * (1 / 3 / count) ** 0.5
    assert (found.square().mean(0) - 1 / 3).abs().max() < 6 * (0.1 / count) ** 0.5


def test_training_draws_anew_and_evaluation_does_not():
    batch = batch_of(small_graphs(4)[1:])
    model = model_of(TokenGtOrf, attention_dropout=0.0, activation_dropout=0.0, stochastic_depth=0.0)
    assert torch.equal(model(batch), model(batch))
    first = model(batch)
    model.eval_seed = 1
    assert not torch.allclose(model(batch), first)
    model.train()
    assert not torch.allclose(model(batch), model(batch))


def test_signs_and_dropout_of_eigenvectors_only_in_training():
    batch = batch_of(small_graphs(4)[1:], "laplacian")
    vectors = batch.node_encoding[:, :3]
    model = model_of(eigenvector_dropout=0.0)
    assert torch.equal(model.identify(batch), vectors)
    model.train()
    for _ in range(5):
        ratio = (model.identify(batch) / vectors)[vectors.abs() > 1e-9]
        assert set(ratio.tolist()) <= {1.0, -1.0}
    seen = torch.stack([(model.identify(batch) * vectors).sum(0).sign() for _ in range(40)])
    assert all(set(column.tolist()) == {1.0, -1.0} for column in seen.T)
    dropped = model_of(eigenvector_dropout=0.5).train().identify(batch)
    assert 0 < (dropped == 0).double().mean() < 1


def test_stochastic_depth_skips_whole_graphs():
    torch.manual_seed(0)
    none = {"dropout": 0.0, "attention_dropout": 0.0, "activation_dropout": 0.0}
    layer = TokenGtLayer(hidden_dim=6, ffn_dim=5, num_heads=2, skip=0.6, **none).double()
    x, mask = torch.randn(50, 4, 6).double(), torch.ones(50, 4).bool()
    with torch.no_grad():
        change = layer(x, mask) - x
        same = (change == 0).flatten(1)
        assert torch.equal(same.all(1), same.any(1))
        assert 0 < same.all(1).double().mean() < 1
        assert not torch.equal(layer.eval()(x, mask), x)


def test_the_published_numbers_of_parameters():
    """48.6 and 48.5 million, with the authors' tables and what their code makes and does not use: a linear map and a norm."""
    schema, unused = DATASETS["pcqm4mv2"].schema, 768 * 769 + 2 * 768
    rows = 512 * 9 - sum(schema.node.sizes) + 512 * 3 - sum(schema.edge.sizes)
    for kind, wanted in (("orf", 48.6), ("lap", 48.5)):
        model = grit.build_model(grit.load_recipe(f"pcqm4mv2-tokengt-{kind}"))
        ours = sum(parameter.numel() for parameter in model.parameters())
        assert round((ours + rows * 768 + unused) / 1e6, 1) == wanted


def test_heads_that_do_not_divide_the_width_are_refused():
    with pytest.raises(grit.GritError, match="hidden_dim 80 is not divisible by num_heads 7"):
        grit.load_recipe("zinc-tokengt-lap", "model.num_heads=7")


@pytest.mark.parametrize("make", [TokenGtLap, TokenGtOrf])
def test_first_weights(make):
    """Matrices are drawn with the standard deviation 0.02, biases are 0."""
    torch.manual_seed(0)
    model = make(SCHEMA, num_layers=1, hidden_dim=64, ffn_dim=64, num_heads=2)
    linears = [
        module for module in model.modules() if isinstance(module, torch.nn.Linear) and module.weight.numel() > 999
    ]
    assert len(linears) >= 4
    for linear in linears:
        assert linear.weight.std().item() == pytest.approx(0.02, rel=0.1)
        assert linear.bias is None or not linear.bias.any()
