"""SAN beside its equations, and what fake edges count."""

import networkx as nx
import pytest
import torch

import grit
from grit.graphs.schema import Features
from grit.models import San
from grit.recipe.builder import build_model
from grit.testing import check_model
from tests.models.by_hand import (
    GRAPHS,
    SCHEMA,
    batch_of,
    embed,
    norm,
    of_matrix,
    with_larger_weights,
    with_own_norms,
)


def build(gamma, make=with_own_norms):
    options = {"num_layers": 2, "hidden_dim": 12, "num_heads": 3, "encoding_dim": 4, "encoding_heads": 2}
    return make(San(SCHEMA, "none", 1, gamma=gamma, **options))


def attention(module, x, edge, fake, edge_index):
    n, channels = x.shape[0], x.shape[1] // module.num_heads
    real = {}
    for number, (source, target) in enumerate(edge_index.T.tolist()):
        real[source, target] = number
    rows = []
    for i in range(n):
        total, mass = torch.zeros(x.shape[1], dtype=x.dtype), torch.zeros(module.num_heads, dtype=x.dtype)
        for j in range(n):
            if (j, i) in real:
                products = module.query(x[i]) * module.key(x[j]) * module.edge(edge[real[j, i]])
                share = 1 / (1 + module.gamma)
            elif i != j:
                products = module.fake_query(x[i]) * module.fake_key(x[j]) * module.fake_edge(fake[0])
                share = module.gamma / (1 + module.gamma)
            else:
                continue
            weight = share * (products.view(-1, channels).sum(1) / channels**0.5).clamp(-5, 5).exp()
            mass += weight
            total += weight.repeat_interleave(channels) * module.value(x[j])
        rows.append(total / (mass + 1e-6).repeat_interleave(channels))
    return torch.stack(rows)


@pytest.mark.parametrize("gamma", [1e-5, 0.5])
def test_by_hand(gamma):
    model = build(gamma)
    with torch.no_grad():
        found = model(batch_of(GRAPHS, "none", 1))
        for number, graph in enumerate(GRAPHS):
            x, edge = embed(model.node.features, graph.x), embed(model.edge, graph.edge_attr)
            for layer in model.layers:
                attended = attention(layer.attention, x, edge, model.fake, graph.edge_index)
                x = norm(layer.norm, x + layer.out(attended))
                x = norm(layer.ffn_norm, x + layer.ffn[3](layer.ffn[0](x).clamp(min=0)))
            torch.testing.assert_close(found[number], model.output.head(x.sum(0, keepdim=True))[0])


def test_without_gamma_fake_edges_count_nothing():
    every, edges = batch_of(GRAPHS, "none", 1), batch_of(GRAPHS, "none", 1, pairs="edges")
    with torch.no_grad():
        for gamma, same in ((0.0, True), (0.5, False)):
            model = build(gamma, with_larger_weights)
            assert torch.allclose(model(every), model(edges), atol=1e-12) is same


def gaps_by_gamma(graph):
    """How much fake edges change predictions for ever smaller gamma."""
    every, edges = batch_of([graph], "none", 1), batch_of([graph], "none", 1, pairs="edges")
    model, gaps = build(0.0, with_larger_weights), []
    with torch.no_grad():
        for gamma in (1e-2, 1e-3, 1e-4):
            for layer in model.layers:
                layer.attention.gamma = gamma
            gaps.append(float((model(every) - model(edges)).abs().max()))
    return gaps


def test_fake_edges_tend_to_nothing_with_gamma_beside_real_ones():
    ring = of_matrix(nx.to_numpy_array(nx.cycle_graph(6)))
    ring.x = torch.arange(6).view(-1, 1)
    large, medium, small = gaps_by_gamma(ring)
    assert large > 5 * medium > 25 * small > 0
    alone = ring.clone()
    alone.x, alone.num_nodes = torch.arange(7).view(-1, 1), 7
    large, _, small = gaps_by_gamma(alone)
    assert small > large / 2, "a node without edges attends to fake ones, however little they count"


@pytest.mark.parametrize("encoding", ["laplacian", "laplacian-unnormalised"])
def test_the_transformer_over_frequencies_leaves_missing_ones_out(encoding):
    """What stands in the places of frequencies that a graph lacks changes nothing; the others do."""
    model = with_own_norms(San(SCHEMA, encoding, 6, num_layers=1))
    batch = batch_of(GRAPHS[:1], encoding, 6)
    n = GRAPHS[0].num_nodes
    assert n < 6
    encoder = model.node.encoding
    with torch.no_grad():
        before = encoder(batch)
        batch.node_encoding[:, n:6] = 7.0
        batch.node_encoding[:, 6 + n :] = 7.0
        torch.testing.assert_close(encoder(batch), before)
        batch.node_encoding[:, n - 1] += 1.0
        assert not torch.allclose(encoder(batch), before)


@pytest.mark.parametrize("encoding", ["laplacian", "rwse"])
def test_the_rules_with_encodings(encoding):
    check_model("san", encoding=encoding, options={"num_layers": 2})


def test_the_published_count_is_that_of_another_configuration():
    """That of its authors' ablations; the configuration behind the published result has ten layers of 56."""
    changes = ("num_layers=6", "hidden_dim=64", "encoding_dim=16", "encoding_layers=3")
    recipe = grit.load_recipe("zinc-san", *(f"model.{change}" for change in changes))
    schema = SCHEMA.model_copy(update={"node": Features(kind="category", sizes=(28,)), "num_outputs": 1})
    model = build_model(recipe, schema)
    assert sum(parameter.numel() for parameter in model.parameters()) == 508_577 == recipe.paper.num_parameters
