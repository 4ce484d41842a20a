"""The Transformer beside its equations, and what it cannot see."""

import pytest
import torch

import grit
from grit.errors import GritError
from grit.models import Transformer
from grit.recipe.builder import build_model
from grit.testing import check_model
from tests.models.by_hand import GRAPHS, SCHEMA, batch_of, embed, norm, wake, with_own_norms


def attention(module, x):
    n, channels = x.shape[0], x.shape[1] // module.num_heads
    query, key, value = (linear(x).view(n, -1, channels) for linear in (module.query, module.key, module.value))
    rows = []
    for i in range(n):
        heads = []
        for h in range(module.num_heads):
            alpha = torch.softmax(key[:, h] @ query[i, h] / channels**0.5, 0)
            heads.append(alpha @ value[:, h])
        rows.append(torch.cat(heads))
    return module.out(torch.stack(rows))


def after_layers(model, x):
    for layer in model.layers:
        x = norm(layer.norm, x + attention(layer.attention, x))
        hidden = layer.ffn[0](x).clamp(min=0)
        x = norm(layer.ffn_norm, x + layer.ffn[3](hidden))
    return x


def build(encoding, walk_steps, **options):
    options = {"num_layers": 2, "hidden_dim": 12, "num_heads": 3, "encoding_dim": 4} | options
    return wake(with_own_norms(Transformer(SCHEMA, encoding, walk_steps, **options)))


def test_by_hand_without_encoding():
    model = build("none", 1)
    with torch.no_grad():
        found = model(batch_of(GRAPHS, "none", 1))
        for number, graph in enumerate(GRAPHS):
            x = after_layers(model, embed(model.node.features, graph.x))
            torch.testing.assert_close(found[number], model.output.head(x.sum(0, keepdim=True))[0])


def test_by_hand_with_return_probabilities():
    model = build("rwse", 4, pooling="mean")
    with torch.no_grad():
        found = model(batch_of(GRAPHS, "rwse", 4))
        for number, graph in enumerate(GRAPHS):
            walk = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=torch.float64)
            walk[graph.edge_index[0], graph.edge_index[1]] = 1.0
            walk /= walk.sum(1, keepdim=True).clamp(min=1)
            returns = torch.stack([torch.linalg.matrix_power(walk, k).diagonal() for k in range(1, 4)], 1)
            encoded = model.node.encoding.linear(norm(model.node.encoding.norm, returns))
            x = after_layers(model, torch.cat([embed(model.node.features, graph.x), encoded], 1))
            torch.testing.assert_close(found[number], model.output.head(x.mean(0, keepdim=True))[0])


@pytest.mark.parametrize("encoding", ["laplacian", "laplacian-unnormalised"])
def test_by_hand_with_frequencies(encoding):
    """As many as a graph has nodes: those that it lacks add nothing, though φ(0, 0) is not 0."""
    model, steps = build(encoding, 5), 5
    batch = batch_of(GRAPHS, encoding, steps)
    assert min(graph.num_nodes for graph in GRAPHS) < steps
    with torch.no_grad():
        found = model(batch)
        assert found.std(0).min() > 1e-3
        for number, graph in enumerate(GRAPHS):
            nodes = slice(int(batch.graphs.node_ptr[number]), int(batch.graphs.node_ptr[number + 1]))
            given = batch.node_encoding[nodes]
            encoded = torch.zeros(graph.num_nodes, 4, dtype=torch.float64)
            for m in range(min(steps, graph.num_nodes)):
                hidden = torch.stack([given[:, m], given[:, steps + m]], 1)
                for linear in (model.node.encoding.first, model.node.encoding.second):
                    hidden = linear(hidden).clamp(min=0)
                encoded += hidden
            x = after_layers(model, torch.cat([embed(model.node.features, graph.x), encoded], 1))
            torch.testing.assert_close(found[number], model.output.head(x.sum(0, keepdim=True))[0])


def test_without_an_encoding_edges_are_not_seen():
    without = [graph.clone() for graph in GRAPHS]
    for graph in without:
        graph.edge_index, graph.edge_attr = graph.edge_index[:, :0], graph.edge_attr[:0]
    blind, sighted = build("none", 1), build("rwse", 4)
    with torch.no_grad():
        torch.testing.assert_close(blind(batch_of(without, "none", 1)), blind(batch_of(GRAPHS, "none", 1)))
        gap = (sighted(batch_of(without, "rwse", 4)) - sighted(batch_of(GRAPHS, "rwse", 4))).abs()
        assert gap.max() > 1e-3


def test_signs_of_eigenvectors_are_drawn_in_training_alone():
    model, batch = build("laplacian", 5), batch_of(GRAPHS, "laplacian", 5)
    encoder = model.node.encoding
    fixed = encoder(batch)
    assert torch.equal(encoder(batch), fixed)
    encoder.train()
    torch.manual_seed(0)
    drawn = [encoder(batch) for _ in range(6)]
    assert any(not torch.allclose(each, fixed) for each in drawn)


@pytest.mark.parametrize("encoding", ["laplacian", "rwse", "svd"])
def test_the_rules_with_encodings(encoding):
    check_model("transformer", encoding=encoding, options={"num_layers": 2})


def test_a_batch_with_another_encoding_is_refused():
    with pytest.raises(GritError, match="node encoding of width 3, the model was built for 4"):
        build("rwse", 4)(batch_of(GRAPHS, "rwse", 3))


def test_an_encoding_as_wide_as_the_model_is_refused():
    with pytest.raises(GritError, match="hidden_dim must be more than encoding_dim, 16.*got 16"):
        build_model(grit.load_recipe("zinc-transformer-lappe", "model.hidden_dim=16"), SCHEMA)
    build("none", 1, encoding_dim=12)  # all channels are the features'
