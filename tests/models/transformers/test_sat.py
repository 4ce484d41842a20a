"""SAT: one layer by hand, subgraph by subgraph; attention that sees the structure around two equal nodes."""

import networkx as nx
import pytest
import torch

import grit
from grit.models import Sat
from tests.models.by_hand import GRAPHS, PLAIN, SCHEMA, batch_of, norm, of_matrix, with_own_norms

SIZES = {"num_layers": 1, "hidden_dim": 8, "num_heads": 2, "num_hops": 2, "towers": 2, "edge_dim": 3}


def pna(conv, x, edges):
    """One layer on {node: vector}; ``edges`` are (source, target, features)."""
    towers, width = len(conv.pre_nns), conv.F_in
    found = {}
    for i in x:
        received = [(j, conv.edge_encoder(e)) for j, target, e in edges if target == i]
        parts = []
        for tower in range(towers):
            own = slice(tower * width, (tower + 1) * width)
            messages = [conv.pre_nns[tower](torch.cat([x[i][own], x[j][own], e])) for j, e in received]
            rows = torch.stack(messages) if messages else torch.zeros(1, width, dtype=torch.float64)
            pooled = [x[i][own], rows.mean(0), rows.sum(0), rows.max(0).values]
            parts.append(conv.post_nns[tower](torch.cat(pooled)))
        found[i] = conv.lin(torch.cat(parts)).clamp(min=0)
    return found


def subgraphs_by_hand(extractor, x, edges, num_hops):
    joined = nx.Graph([(j, i) for j, i, _ in edges])
    joined.add_nodes_from(range(len(x)))
    rows = []
    for root in range(len(x)):
        members = set(nx.single_source_shortest_path_length(joined, root, cutoff=num_hops))
        z = {node: x[node] for node in members}
        within = [edge for edge in edges if {edge[0], edge[1]} <= members]
        for conv in extractor.convs:
            z = pna(conv, z, within)
        rows.append(torch.cat([x[root], sum(z.values())]))
    return extractor.out(norm(extractor.norm, torch.stack(rows)))


def subtrees_by_hand(extractor, x, edges, num_hops):
    found = [dict(enumerate(x))]
    for conv in extractor.convs:
        found.append(pna(conv, found[-1], edges))
    rows = [torch.cat([each[node] for each in found]) for node in range(len(x))]
    return extractor.out(norm(extractor.norm, torch.stack(rows)))


@pytest.mark.parametrize(
    ("extractor", "by_hand"),
    [("subgraph", subgraphs_by_hand), ("subtree", subtrees_by_hand)],
    ids=["subgraph", "subtree"],
)
def test_a_model_of_one_layer(extractor, by_hand):
    torch.manual_seed(0)
    model = with_own_norms(Sat(SCHEMA, "rwse", 4, extractor=extractor, **SIZES))
    (layer,) = model.layers
    with torch.no_grad():
        batch = batch_of(GRAPHS, encoding="rwse", walk_steps=4, structures=("egonets-2",))
        found = model(batch)
        first = 0
        for number, graph in enumerate(GRAPHS):
            n = graph.num_nodes
            returns = batch.node_encoding[first : first + n, 1:]
            first += n
            x = model.node.embedding.weight[graph.x[:, 0]] + model.position(returns)
            features = model.edge.embedding.weight[graph.edge_attr]
            edges = [(j, i, e) for (j, i), e in zip(graph.edge_index.T.tolist(), features, strict=True)]
            query, key = layer.query_key(by_hand(layer.extractor, x, edges, 2)).chunk(2, 1)
            value, heads = layer.value(x), []
            for head in (slice(0, 4), slice(4, 8)):
                weights = torch.softmax(query[:, head] @ key[:, head].T / 2, 1)  # sqrt(C) = 2
                heads.append(weights @ value[:, head])
            degree = torch.tensor([sum(j == node for j, _, _ in edges) for node in range(n)])
            x = norm(layer.attention_norm, x + layer.out(torch.cat(heads, 1)) / (1 + degree).sqrt()[:, None])
            x = norm(layer.mlp_norm, x + layer.narrow(layer.widen(x).clamp(min=0)))
            torch.testing.assert_close(found[number], model.head(x.mean(0)))


def test_equal_nodes_in_different_subgraphs_attend_differently():
    """In a path of 5 nodes without features, the ends and the middle differ by what is around them, and by nothing else."""
    path = of_matrix(nx.to_numpy_array(nx.path_graph(5), dtype=int))
    batch = batch_of([path], structures=("egonets-1", "egonets-2"))
    x = torch.ones(5, 8, dtype=torch.float64)
    torch.manual_seed(0)
    near = Sat(PLAIN, "none", 1, **SIZES | {"num_hops": 1}).double().eval().layers[0].logits(x, None, batch)
    wide = Sat(PLAIN, "none", 1, **SIZES).double().eval().layers[0].logits(x, None, batch)
    rows = [logits.view(5, 5, 2) for logits in (near, wide)]
    for logits in rows:
        assert not torch.allclose(logits[0], logits[2])
        torch.testing.assert_close(logits[0], logits[4].flip(0))
    # One step from node 1 and from node 2 there are the same two edges; two steps from node 1 the path ends.
    torch.testing.assert_close(rows[0][1], rows[0][2])
    assert not torch.allclose(rows[1][1], rows[1][2])


def test_options_that_do_not_go_together():
    for option, message in (("model.num_heads=5", "num_heads"), ("model.towers=5", "towers 5")):
        with pytest.raises(grit.GritError, match=message):
            grit.load_recipe("zinc-sat", option)


def test_a_constant_channel_is_left_out():
    assert Sat(SCHEMA, "rwse", 21).position.in_features == 20
    assert Sat(SCHEMA, "none", 1).position is None
    assert Sat(SCHEMA, "rwse", 1).position is None
