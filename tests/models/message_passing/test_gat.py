"""GAT and GATv2 in plain loops; which of them can rank keys differently for each query."""

import pytest
import torch
import torch.nn.functional as F
from torch_geometric.nn import GATConv

import grit
from grit.models import Gat, GatV2
from tests.models.by_hand import SCHEMA, batch_of, embed, norm, with_own_norms
from tests.models.by_hand import WITH_DIRECTED as GRAPHS


def gat_scores(conv, keys, queries):
    """a_l · W x_j + a_r · W x_i, then LeakyReLU: (E, H)."""
    return F.leaky_relu((keys * conv.att_src[0]).sum(-1) + (queries * conv.att_dst[0]).sum(-1), 0.2)


def gatv2_scores(conv, keys, queries):
    """a · LeakyReLU(W_l x_j + W_r x_i): (E, H)."""
    return (F.leaky_relu(keys + queries, 0.2) * conv.att[0]).sum(-1)


def attended(conv, x, edge_index, scores):
    """‖_h Σ_j α_ij W x_j, edge by edge."""
    left, right = (conv.lin, conv.lin) if isinstance(conv, GATConv) else (conv.lin_l, conv.lin_r)
    shape = (x.shape[0], conv.heads, conv.out_channels)
    keys, queries = left(x).view(shape), right(x).view(shape)
    result = torch.zeros(shape, dtype=x.dtype)
    for node in range(x.shape[0]):
        sources = [j for j, i in edge_index.T.tolist() if i == node]
        if sources:
            alpha = torch.softmax(scores(conv, keys[sources], queries[[node] * len(sources)]), 0)
            result[node] = (alpha[:, :, None] * keys[sources]).sum(0)
    return result.flatten(1)


@pytest.mark.parametrize(("kind", "scores"), [(Gat, gat_scores), (GatV2, gatv2_scores)])
@torch.no_grad()
def test_by_hand(kind, scores):
    model = with_own_norms(kind(SCHEMA, num_layers=3, hidden_dim=12, num_heads=3))
    found = model(batch_of(GRAPHS))
    for number, graph in enumerate(GRAPHS):
        x = embed(model.node, graph.x)
        for layer, heads in zip(model.layers, (3, 3, 1), strict=True):
            assert layer.conv.conv.heads == heads
            x = x + F.elu(norm(layer.norm, attended(layer.conv.conv, x, graph.edge_index, scores)))
        torch.testing.assert_close(found[number], model.output.head(x.mean(0, keepdim=True))[0])


def attention(kind, seed, num_nodes=5):
    """Weights of one layer between all nodes, (query, key, head)."""
    torch.manual_seed(seed)
    conv = kind(SCHEMA, num_layers=2, hidden_dim=12, num_heads=3).layers[0].conv.conv.double()
    source, target = torch.cartesian_prod(torch.arange(num_nodes), torch.arange(num_nodes)).T
    x = torch.randn(num_nodes, 12, dtype=torch.float64)
    with torch.no_grad():
        _, (_, alpha) = conv(x, torch.stack([source, target]), return_attention_weights=True)
    return alpha.view(num_nodes, num_nodes, 3).transpose(0, 1)


@pytest.mark.parametrize("kind", [Gat, GatV2])
def test_attention_sums_to_one_over_neighbours(kind):
    alpha = attention(kind, 0)
    assert (alpha > 0).all()
    torch.testing.assert_close(alpha.sum(1), torch.ones(5, 3, dtype=torch.float64))


def orders(kind, seed):
    """Of each head, in how many ways its queries rank the keys."""
    ranks = attention(kind, seed).argsort(1)  # (query, rank, head)
    return [len(ranks[:, :, head].unique(dim=0)) for head in range(3)]


def test_gat_ranks_keys_alike_for_every_query_and_gatv2_need_not():
    assert all(orders(Gat, seed) == [1, 1, 1] for seed in range(10))
    assert all(max(orders(GatV2, seed)) > 1 for seed in range(10))


@pytest.mark.parametrize("name", ["gat", "gatv2"])
def test_heads_that_do_not_divide_the_width_are_refused(name):
    with pytest.raises(grit.GritError, match="num_heads"):
        grit.load_recipe(f"zinc-{name}", "model.num_heads=7")
