"""Graphormer and its descendants beside their equations, and which graphs they tell apart."""

import networkx as nx
import pytest
import torch

from grit.graphs.schema import Features
from grit.models import MODELS, Graphormer, GraphormerGd, GraphormerUrpe
from grit.models.blocks import Grid
from grit.models.blocks.graphormer_biases import distances
from grit.studies.theory.hard_graphs import witness_pairs
from grit.testing import check_model
from tests.models.by_hand import GRAPHS, SCHEMA, batch_of, embed, of_matrix, with_larger_weights

SMALL = {"num_layers": 2, "hidden_dim": 12, "ffn_dim": 8, "num_heads": 3, "path_steps": 3}
STEPS = 4
ENCODING = {Graphormer: "spd", GraphormerUrpe: "spd", GraphormerGd: "resistance"}


def build(kind, steps=STEPS, **options):
    return with_larger_weights(kind(SCHEMA, steps, **{**SMALL, **options}))


def batch_for(kind, graphs, steps=STEPS):
    return batch_of(graphs, ENCODING[kind], steps, structures=("paths-3",))


def simple(graph):
    """As networkx has it, with the number of each edge."""
    found = nx.DiGraph()
    found.add_nodes_from(range(graph.num_nodes))
    for number, (source, target) in enumerate(graph.edge_index.T.tolist()):
        found.add_edge(source, target, number=number)
    return found


def path_bias(model, graph, i, j):
    """The mean over all shortest paths of the mean over their first three edges."""
    found, encoded = simple(graph), embed(model.path.edge, graph.edge_attr)
    heads = model.path.steps.weight.view(3, 3, 3)
    paths = list(nx.all_shortest_paths(found, i, j))
    total = torch.zeros(3, dtype=torch.float64)
    for path in paths:
        edges = [found.edges[edge]["number"] for edge in nx.utils.pairwise(path)][:3]
        total += sum((encoded[edge] @ heads[t] for t, edge in enumerate(edges)), torch.zeros(3)) / len(edges)
    return total / len(paths)


def tables(model, graph, *, far):
    """Bias (n + 1, n + 1, H), and which pairs attend, the token first."""
    n = graph.num_nodes
    bias = model.distance.token.weight.expand(n + 1, n + 1, -1).clone()
    allowed = torch.ones(n + 1, n + 1, dtype=torch.bool)
    length = dict(nx.all_pairs_shortest_path_length(simple(graph)))
    for i in range(n):
        for j in range(n):
            distance = min(length[i].get(j, STEPS), STEPS)
            allowed[i + 1, j + 1] = far or distance < STEPS
            bias[i + 1, j + 1] = model.distance.table.weight[distance] if allowed[i + 1, j + 1] else 0.0
            if i != j and j in length[i]:
                bias[i + 1, j + 1] += path_bias(model, graph, i, j)
    return bias, allowed


def attention(module, x, bias, allowed, factor=None):
    n, channels = x.shape[0], x.shape[1] // module.num_heads
    query, key, value = (linear(x).view(n, -1, channels) for linear in (module.query, module.key, module.value))
    heads = []
    for h in range(module.num_heads):
        logits = query[:, h] @ key[:, h].T / channels**0.5 + bias[..., h]
        weights = torch.softmax(logits.masked_fill(~allowed, -torch.inf), 1)
        heads.append((weights if factor is None else weights * factor[..., h]) @ value[:, h])
    return module.out(torch.cat(heads, 1))


def tokens(trunk, graph):
    into = torch.bincount(graph.edge_index[1], minlength=graph.num_nodes)
    out = torch.bincount(graph.edge_index[0], minlength=graph.num_nodes)
    x = embed(trunk.node, graph.x) + trunk.in_degree.weight[into] + trunk.out_degree.weight[out]
    return torch.cat([trunk.token.weight, x])


def predicted(trunk, x, bias, allowed, factor=None):
    for layer in trunk.layers:
        if layer.norm_first:
            x = x + attention(layer.attention, layer.norm(x), bias, allowed, factor)
            x = x + layer.ffn(layer.ffn_norm(x))
        else:
            x = layer.norm(x + attention(layer.attention, x, bias, allowed, factor))
            x = layer.ffn_norm(x + layer.ffn(x))
    return x


def test_the_first_release_by_hand():
    model = build(Graphormer)
    with torch.no_grad():
        found = model(batch_for(Graphormer, GRAPHS))
        for number, graph in enumerate(GRAPHS):
            x = predicted(model.trunk, tokens(model.trunk, graph), *tables(model, graph, far=False))
            torch.testing.assert_close(found[number], model.trunk.head(model.trunk.last_norm(x))[0])


def test_the_second_release_by_hand():
    model = build(Graphormer, release="second")
    first, _, norm, last = model.trunk.head
    with torch.no_grad():
        found = model(batch_for(Graphormer, GRAPHS))
        for number, graph in enumerate(GRAPHS):
            x = model.trunk.input_norm(tokens(model.trunk, graph))
            x = predicted(model.trunk, x, *tables(model, graph, far=True))
            torch.testing.assert_close(found[number], last(norm(nn_gelu(first(x))))[0])


def nn_gelu(x):
    return x * 0.5 * (1 + torch.erf(x / 2**0.5))


def test_urpe_by_hand():
    model = build(GraphormerUrpe)
    with torch.no_grad():
        found = model(batch_for(GraphormerUrpe, GRAPHS))
        for number, graph in enumerate(GRAPHS):
            n, length = graph.num_nodes, dict(nx.all_pairs_shortest_path_length(simple(graph)))
            factor = model.factor.token.weight.expand(n + 1, n + 1, -1).clone()
            for i in range(n):
                for j in range(n):
                    distance = length[i].get(j, STEPS)
                    factor[i + 1, j + 1] = model.factor.table.weight[distance] if distance < STEPS else 0.0
            x = predicted(model.trunk, tokens(model.trunk, graph), *tables(model, graph, far=False), factor)
            torch.testing.assert_close(found[number], model.trunk.head(model.trunk.last_norm(x))[0])


def test_resistance_kernels_by_hand():
    """Of one pair of joined nodes, and of one that is not joined."""
    model = build(GraphormerGd, num_kernels=5)
    batch, kernels = batch_for(GraphormerGd, GRAPHS), model.kernels
    resistance = torch.linspace(0, 2, batch.num_pairs, dtype=torch.float64)
    with torch.no_grad():
        found = kernels(resistance, batch)
        for p in (3, batch.num_pairs - 2):
            query, key = (int(batch.graphs.x[side[p], 0]) for side in (batch.pairs.query, batch.pairs.key))
            scale = kernels.query_scale[query] + kernels.key_scale[key]
            shift = kernels.query_shift[query] + kernels.key_shift[key]
            width = kernels.width.abs() + 0.01
            normal = torch.distributions.Normal(kernels.mean, width)
            gaussians = normal.log_prob(scale * resistance[p] + shift).exp()
            first, _, last = kernels.mlp
            torch.testing.assert_close(found[p], last(nn_gelu(first(gaussians))))


def test_urpe_begins_as_graphormer_and_its_rows_need_not_sum_to_one():
    batch = batch_for(GraphormerUrpe, GRAPHS)
    model = GraphormerUrpe(SCHEMA, STEPS, **SMALL).double().eval()
    plain = Graphormer(SCHEMA, STEPS, **SMALL).double().eval()
    plain.load_state_dict({name: value for name, value in model.state_dict().items() if not name.startswith("factor.")})
    torch.testing.assert_close(model(batch), plain(batch))
    grid, distance = Grid(batch.graphs.nodes_per_graph, tokens=1), distances(batch, STEPS)
    x = grid.spread(torch.randn(batch.num_nodes, SMALL["hidden_dim"], dtype=torch.float64))
    layer, keys = model.trunk.layers[0].attention, grid.occupied[:, None, None, :]
    with torch.no_grad():
        model.factor.table.weight.mul_(torch.rand_like(model.factor.table.weight))
        rows = layer.weights(x, keys, factor=model.factor(distance, batch, grid)).sum(-1)
        torch.testing.assert_close(layer.weights(x, keys).sum(-1), torch.ones_like(rows))
    assert (rows[grid.occupied.unsqueeze(1).expand_as(rows)] - 1).abs().max() > 0.1


@pytest.mark.parametrize(
    ("kind", "told_apart"),
    [
        (Graphormer, ("C6 / 2 C3", "cube / Wagner")),
        (GraphormerUrpe, ("C6 / 2 C3", "cube / Wagner")),
        (GraphormerGd, ("C6 / 2 C3", "cube / Wagner", "triangular prism / K3,3", "Dodecahedron / Desargues")),
    ],
)
def test_which_graphs_are_told_apart(kind, told_apart):
    """Distances do not tell the last two pairs apart, resistances do; neither those of strongly regular graphs."""
    model = build(kind, steps=8)
    pairs = witness_pairs()
    for name in (
        "C6 / 2 C3",
        "cube / Wagner",
        "triangular prism / K3,3",
        "Dodecahedron / Desargues",
        "Shrikhande / rook 4x4",
    ):
        with torch.no_grad():
            one, other = (model(batch_for(kind, [of_matrix(graph)], 8)) for graph in pairs[name])
        gap = float((one - other).abs().max() / one.abs().max())
        assert (gap > 1e-6) if name in told_apart else (gap < 1e-10), (name, gap)


def test_the_types_of_edges_on_the_way_are_seen():
    """A path of five edges, one of which is of another type, seen from its ends: only the first three steps are looked at."""
    graph = of_matrix(nx.to_numpy_array(nx.path_graph(6)))
    other = [graph.clone(), graph.clone()]
    for data, steps in zip(other, ({(2, 3), (3, 2)}, {(0, 1), (1, 0)}), strict=True):
        marked = torch.tensor([tuple(edge) in steps for edge in graph.edge_index.T.tolist()])
        data.edge_attr = torch.where(marked.unsqueeze(1), 2, graph.edge_attr)
    model = build(Graphormer, steps=6)
    batch = batch_for(Graphormer, [graph, *other], 6)
    with torch.no_grad():
        plain, middle, end = model.path(batch, Grid(batch.graphs.nodes_per_graph, tokens=1))[:, :, 1, 6]
    assert not torch.allclose(plain, middle)
    assert not torch.allclose(plain, end)
    with torch.no_grad():
        from_other_end = model.path(batch, Grid(batch.graphs.nodes_per_graph, tokens=1))[:, :, 6, 1]
    torch.testing.assert_close(from_other_end[0], from_other_end[2])  # the fifth step of the way


@pytest.mark.parametrize("name", ["graphormer", "graphormer-gd", "graphormer-urpe"])
@pytest.mark.parametrize("release", ["first", "second"])
def test_the_rules_for_both_releases(name, release):
    check_model(name, options={"num_layers": 2, "release": release})


def test_the_released_count_but_for_rows_that_no_data_reads():
    """489,321 is printed; the released code has a last norm more, and tables for 64 atoms and bonds, 40 distances and steps."""
    schema = SCHEMA.model_copy(
        update={
            "node": Features(kind="category", sizes=(64,)),
            "edge": Features(kind="category", sizes=(64,)),
            "num_outputs": 1,
        }
    )
    model = MODELS["graphormer"].build(schema=schema, walk_steps=40, path_steps=40)
    assert sum(parameter.numel() for parameter in model.parameters()) == 489_321 + 2 * 80
