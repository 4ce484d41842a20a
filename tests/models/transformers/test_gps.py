import pytest
import torch
from torch_geometric.transforms import AddRandomWalkPE

import grit
from grit.datasets import DATASETS
from grit.models import Gps
from grit.testing import check_model
from tests.models.by_hand import GRAPHS, SCHEMA, batch_of, cycles, embed, norm, with_own_norms
from tests.models.message_passing.test_gatedgcn import layer_by_hand
from tests.training.small import small_graphs

LAPLACIAN = "laplacian-unnormalised"


def test_the_published_number_of_parameters():
    """GraphGPS provides for 28 atom types, as ZINC-full has them."""
    model = Gps(DATASETS["zinc-full"].schema)
    assert sum(parameter.numel() for parameter in model.parameters()) == 423_717


def gine_by_hand(layer, x, edge, edge_index):
    total = x.clone()
    for (source, target), each in zip(edge_index.T.tolist(), edge, strict=True):
        total[target] += (x[source] + each).clamp(min=0)
    mlp = layer.conv.nn
    return x + mlp.second(mlp.first(total).clamp(min=0)), edge


@pytest.mark.parametrize(("local", "by_hand"), [("gine", gine_by_hand), ("gatedgcn", layer_by_hand)])
def test_by_hand(local, by_hand):
    """A residual and a norm after each of message passing, attention and FFN."""
    model = with_own_norms(Gps(SCHEMA, num_layers=2, local=local))
    with torch.no_grad():
        found = model(batch_of(GRAPHS, "rwse", 21))
        for number, graph in enumerate(GRAPHS):
            returns = AddRandomWalkPE(20)(graph.clone()).random_walk_pe.double()
            encoding = model.node.encoding
            x = torch.cat([embed(model.node.features, graph.x), encoding.linear(norm(encoding.norm, returns))], 1)
            edge = embed(model.edge, graph.edge_attr)
            for layer in model.layers:
                attended = layer.attention(x[None], x[None], x[None], need_weights=False)[0][0]
                after, edge = by_hand(layer.local, x, edge, graph.edge_index)
                x = norm(layer.local_norm, after) + norm(layer.attention_norm, attended + x)
                x = norm(layer.norm, x + layer.ffn.second(layer.ffn.first(x).clamp(min=0)))
            wanted = model.output.head(x.sum(0, keepdim=True))[0]
            torch.testing.assert_close(found[number], wanted, rtol=1e-5, atol=1e-5)  # PyG's walk is in single precision


def test_eigenvectors_by_hand():
    """The sum over the frequencies that a graph has: of the others nothing counts, not even a bias."""
    model = with_own_norms(Gps(SCHEMA, encoding=LAPLACIAN, walk_steps=10, num_layers=1))
    batch, encoder = batch_of(GRAPHS, LAPLACIAN, 10), model.node.encoding
    with torch.no_grad():
        found = model.node(batch)[:, 64 - 28 :]
        for graph in range(len(GRAPHS)):
            first, stop = batch.graphs.node_ptr[graph : graph + 2].tolist()
            for node in range(first, stop):
                total = torch.zeros(28, dtype=torch.float64)
                for m in range(min(10, stop - first)):
                    pair = batch.node_encoding[node, [m, 10 + m]]
                    total += encoder.second(encoder.first(pair).clamp(min=0)).clamp(min=0)
                torch.testing.assert_close(found[node], total)


def test_signs_of_eigenvectors_are_drawn_in_training_only():
    torch.manual_seed(0)
    model = Gps(SCHEMA, encoding=LAPLACIAN, walk_steps=4, num_layers=1).double()
    batch = batch_of(GRAPHS, LAPLACIAN, 4)
    seen = {tuple(model.node(batch).flatten().tolist()) for _ in range(20)}
    assert 1 < len(seen) <= 2**4
    model.eval()
    assert torch.equal(model(batch), model(batch))


@pytest.mark.parametrize("local", ["gine", "gatedgcn"])
@torch.no_grad()
def test_separates_a_hexagon_from_two_triangles_only_with_an_encoding(local):
    graphs = [cycles(6), cycles(3, 3)]
    bare = with_own_norms(Gps(SCHEMA, encoding="none", walk_steps=1, num_layers=3, local=local))
    one, other = bare(batch_of(graphs))
    torch.testing.assert_close(one, other, rtol=1e-11, atol=1e-11)
    walks = with_own_norms(Gps(SCHEMA, num_layers=3, local=local))
    one, other = walks(batch_of(graphs, "rwse", 21))
    assert (one - other).abs().max() > 1e-4


@pytest.mark.parametrize("encoding", ["rwse", LAPLACIAN])
def test_the_rules_with_gates_inside(encoding):
    options = {"local": "gatedgcn", "num_layers": 2, "dropout": 0.1, "activation": "gelu"}
    check_model("gps", encoding=encoding, options=options, unread=("layers.1.local.edge_norm",))


def test_reads_any_pairs():
    graphs = small_graphs(4)
    model = Gps(DATASETS["zinc"].schema, encoding="rrwp", walk_steps=5, num_layers=2).eval()
    one, other = (grit.PairBatch.from_data_list(graphs, 5, pairs=pairs) for pairs in ("edges", "all"))
    torch.testing.assert_close(model(one), model(other))


@pytest.mark.parametrize("option", ["attention_dropout", "dropout"])
def test_dropout_only_in_training(option):
    batch = grit.PairBatch.from_data_list(small_graphs(4), encoding="rwse")
    none = {"attention_dropout": 0.0, "dropout": 0.0}
    model = Gps(DATASETS["zinc"].schema, num_layers=1, **{**none, option: 0.5})
    assert not torch.equal(model(batch), model(batch))
    model.eval()
    assert torch.equal(model(batch), model(batch))
    free = Gps(DATASETS["zinc"].schema, num_layers=1, **none)
    assert torch.equal(free(batch), free(batch))


def test_the_number_of_heads_matters():
    """The weights are the same, so that only what is computed can differ."""
    batch = grit.PairBatch.from_data_list(small_graphs(4), encoding="rwse")
    one, four = (Gps(DATASETS["zinc"].schema, num_layers=1, num_heads=heads).eval() for heads in (1, 4))
    four.load_state_dict(one.state_dict())
    assert not torch.allclose(one(batch), four(batch))


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["model.num_layers=0"], "model.num_layers: got 0"),
        (["model.num_heads=5"], "model: hidden_dim 64 is not divisible by num_heads 5"),
        (["model.attention_dropout=1.0"], "model.attention_dropout: got 1.0"),
        (["model.local=gat"], "model.local: got 'gat': there are gine, gatedgcn"),
    ],
)
def test_options_that_cannot_be(overrides, message):
    with pytest.raises(grit.GritError, match=message):
        grit.load_recipe("zinc", "model.name=gps", *overrides)


def test_an_encoding_that_leaves_no_room_for_features():
    recipe = grit.load_recipe("zinc-gps", "model.hidden_dim=28")
    with pytest.raises(grit.GritError, match="hidden_dim must be more than encoding_dim, 28"):
        grit.build_model(recipe)
