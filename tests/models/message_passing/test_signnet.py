from dataclasses import replace
from math import isfinite

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import grit
from grit.models import SignNet
from grit.training.train import RunOptions
from tests.graph_strategies import featured_graphs
from tests.models.by_hand import GRAPHS, SCHEMA, batch_of, cycles, embed, norm, with_own_norms
from tests.training.small import small_store


def mlp_by_hand(mlp, x):
    return mlp[3](norm(mlp[1], mlp[0](x)).clamp(min=0))


def phi_by_hand(model, vector, edge_index):
    """φ of one eigenvector: (n,) -> (n, D)."""
    values, before = vector[:, None], 0
    for layer in model.phi:
        heard = (1 + layer.eps) * values
        for source, target in edge_index.T.tolist():
            heard[target] = heard[target] + values[source]
        values = norm(layer.norm, mlp_by_hand(layer.mlp, heard)).clamp(min=0) + before
        before = values
    return values


def rho_by_hand(rho, rows):
    """The set of one node: (k, D) -> (k, D), head by head."""
    query, key, value = rho.maps(rows).chunk(3, 1)
    width = rows.shape[1] // rho.num_heads
    heads = []
    for head in range(rho.num_heads):
        part = slice(head * width, (head + 1) * width)
        heads.append(torch.softmax(query[:, part] @ key[:, part].T / width**0.5, 1) @ value[:, part])
    rows = rho.attention_norm(rows + rho.out(torch.cat(heads, 1)))
    return rho.norm(rows + rho.ffn(rows))


@pytest.mark.parametrize("frequencies", [3, 10])
def test_by_hand(frequencies):
    model = with_own_norms(SignNet(SCHEMA, frequencies, num_layers=2, hidden_dim=8, sign_layers=2))
    batch = batch_of(GRAPHS, "laplacian", frequencies)
    with torch.no_grad():
        found = model(batch)
        for number, graph in enumerate(GRAPHS):
            first, stop = batch.graphs.node_ptr[number : number + 2].tolist()
            vectors = batch.node_encoding[first:stop, : min(frequencies, graph.num_nodes)].T  # (k, n)
            both = [phi_by_hand(model, s * each, graph.edge_index) for each in vectors for s in (1, -1)]
            sets = torch.stack([a + b for a, b in zip(both[::2], both[1::2], strict=True)], 1)  # (n, k, D)
            summed = torch.stack([rho_by_hand(model.rho, rows).sum(0) for rows in sets])
            positions = norm(model.position[1], model.position[0](summed))
            x = model.join(torch.cat([embed(model.node, graph.x), positions], 1))
            for table, conv, each in zip(model.edges, model.convs, model.norms, strict=True):
                heard, edge = (1 + conv.eps) * x, embed(table, graph.edge_attr)
                for e, (source, target) in enumerate(graph.edge_index.T.tolist()):
                    heard[target] = heard[target] + (x[source] + edge[e]).clamp(min=0)
                x = x + norm(each, mlp_by_hand(conv.nn, heard)).clamp(min=0)
            rows = norm(model.head[1], model.head[0](x.sum(0, keepdim=True))).clamp(min=0)
            torch.testing.assert_close(found[number], model.head[3](rows)[0])


@given(st.lists(featured_graphs(), min_size=1, max_size=3), st.lists(st.booleans(), min_size=6, max_size=6))
@torch.no_grad()
def test_the_sign_of_no_eigenvector_makes_a_difference(data_list, flips):
    model = with_own_norms(SignNet(SCHEMA, 6, num_layers=2, hidden_dim=8, sign_layers=2))
    batch = batch_of(data_list, "laplacian", 6)
    signs = torch.tensor([-1.0 if flip else 1.0 for flip in flips] + [1.0] * 6, dtype=torch.float64)
    torch.testing.assert_close(
        model(replace(batch, node_encoding=batch.node_encoding * signs)), model(batch), rtol=0, atol=1e-12
    )


@torch.no_grad()
def test_what_eigenvectors_say_counts():
    """The cycle of six and two triangles have the same features and degrees."""
    model = with_own_norms(SignNet(SCHEMA, 6, num_layers=2, hidden_dim=16, sign_layers=2))
    one, other = model(batch_of([cycles(6), cycles(3, 3)], "laplacian", 6))
    assert (one - other).abs().max() > 1e-3


def test_attention_dropout_only_in_training():
    batch = batch_of(GRAPHS, "laplacian", 6)
    model = SignNet(SCHEMA, 6, num_layers=1, attention_dropout=0.5).double()
    assert not torch.equal(model(batch), model(batch))
    model.eval()
    assert torch.equal(model(batch), model(batch))


def test_trains_on_a_batch_of_one_graph(tmp_path):
    """The head has a norm over graphs; the last batch of an epoch may have one."""
    small = ("model.num_layers=1", "model.hidden_dim=8", "model.sign_layers=1", "encoding.walk_steps=4")
    recipe = grit.load_recipe("zinc-signnet", *small, "train.epochs=1", "train.batch_size=49")
    result = grit.train(recipe, tmp_path / "run", store=small_store(), options=RunOptions(device="cpu"))
    assert isfinite(result["test"]["mae"])


def test_heads_that_do_not_divide_the_width():
    with pytest.raises(grit.GritError, match="hidden_dim 128 is not divisible by num_heads 3"):
        SignNet(SCHEMA, 6, num_heads=3)
