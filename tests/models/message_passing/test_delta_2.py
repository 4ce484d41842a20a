import pytest
import torch
from torch import nn
from torch_geometric.data import Data

import grit
from grit.graphs.schema import Features, GraphSchema
from grit.models import Delta2Gnn, Delta2Lgnn, Gine
from grit.models.message_passing.delta_2 import steps
from grit.studies.theory.hard_graphs import witness_pairs
from tests.training.small import small_graphs

KINDS = [Delta2Gnn, Delta2Lgnn]
SCHEMA = GraphSchema(
    node=Features(kind="category", sizes=(21,)), edge=Features(kind="category", sizes=(4,)), num_outputs=2
)
BARE = GraphSchema(node=Features(kind="none"), edge=Features(kind="none"), num_outputs=3)
# With a self-loop, two parallel edges, one direction only, and a node without edges.
ODD = Data(
    x=torch.arange(5)[:, None],
    edge_index=torch.tensor([[0, 1, 1, 1, 2, 3], [1, 0, 2, 2, 3, 3]]),
    edge_attr=torch.tensor([1, 1, 2, 3, 1, 2]),
)


def batch_of(graphs):
    return grit.PairBatch.from_data_list(graphs, 1, encoding="none", dtype=torch.float64)


def model_of(kind, schema=SCHEMA, **options):
    torch.manual_seed(0)
    model = kind(schema, **{"num_layers": 2, "hidden_dim": 6, **options}).double().eval()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d):
            for values in (module.weight.data, module.bias.data, module.running_mean, module.running_var):
                values.copy_(torch.rand_like(values) + 0.5)
    for layer in model.layers:
        layer.epsilon.data.normal_()
    return model


def mlp(module, x):
    return module[2](module[0](x).clamp(min=0))


def batch_norm(module, x):
    return (x - module.running_mean) / torch.sqrt(module.running_var + module.eps) * module.weight + module.bias


def first_pairs(model, graph):
    n = graph.num_nodes
    x = torch.zeros(n, n, 6).double()
    listed = list(zip(graph.edge_index.T.tolist(), graph.edge_attr.tolist(), strict=True))
    for v in range(n):
        for w in range(n):
            bonds = [bond for (s, t), bond in listed if (s, t) == (w, v)]
            kind = 2 if bonds else int(v == w)
            first = model.first.embedding.weight[graph.x[v, 0]] + model.second.embedding.weight[graph.x[w, 0]]
            first = first + model.kind.weight[kind] + sum(model.edge.embedding.weight[bond] for bond in bonds)
            x[v, w] = model.pair(first.clamp(min=0))
    return x


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("graph", [*small_graphs(3)[1:], ODD])
def test_by_hand(kind, graph):
    """Pair by pair, neighbour by neighbour."""
    model = model_of(kind)
    n = graph.num_nodes
    into = {v: {s for s, t in graph.edge_index.T.tolist() if t == v} for v in range(n)}
    with torch.no_grad():
        x = first_pairs(model, graph)
        made = []
        for layer in model.layers:
            new = torch.zeros_like(x)
            for v in range(n):
                for w in range(n):
                    zero = torch.zeros(6).double()
                    heard = [
                        sum((x[u, w] for u in range(n) if u in into[v]), zero),
                        sum((x[u, w] for u in range(n) if u not in into[v]), zero),
                        sum((x[v, u] for u in range(n) if u in into[w]), zero),
                        sum((x[v, u] for u in range(n) if u not in into[w]), zero),
                    ]
                    heard = heard[::2] if kind is Delta2Lgnn else heard
                    said = [
                        mlp(gin, (1 + eps) * x[v, w] + each).clamp(min=0)
                        for gin, eps, each in zip(layer.gins, layer.epsilon, heard, strict=True)
                    ]
                    new[v, w] = batch_norm(layer.norm, mlp(layer.combine, torch.cat(said)))
            x = new
            made.append(x)
        pooled = torch.cat(made, 2)
        torch.testing.assert_close(model(batch_of([graph]))[0], model.head(pooled.mean((0, 1))))
        nodes = model_of(kind, SCHEMA.model_copy(update={"level": "node"}))
        nodes.load_state_dict(model.state_dict())
        torch.testing.assert_close(nodes(batch_of([graph])), nodes.head(pooled.mean(1)))


def gap(model, names):
    """Relative difference of what a random model makes of two graphs without features."""
    pair = [
        Data(edge_index=torch.from_numpy(matrix).nonzero().T.contiguous(), num_nodes=len(matrix))
        for matrix in witness_pairs()[names]
    ]
    with torch.no_grad():
        one, other = model(batch_of(pair))
    return float((one - other).abs().max() / one.abs().max())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("names", ["C6 / 2 C3", "triangular prism / K3,3", "decalin / bicyclopentyl"])
def test_tells_apart_what_1_wl_does_not(kind, names):
    torch.manual_seed(0)
    assert gap(Gine(BARE, num_layers=4).double().eval(), names) < 1e-12
    assert gap(model_of(kind, BARE, num_layers=4, hidden_dim=32), names) > 1e-9


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("names", ["Shrikhande / rook 4x4", "T(8) / Chang 1"])
def test_does_not_tell_apart_strongly_regular_graphs(kind, names):
    """2-FWL does not, and it is at least as strong: how many neighbours two nodes share is all that a pair can count."""
    assert gap(model_of(kind, BARE, num_layers=4, hidden_dim=32), names) < 1e-12


def test_only_the_local_form_keeps_components_apart():
    """Without global neighbours the pairs within a component do not hear of another component."""
    edges = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
    schema = SCHEMA.model_copy(update={"level": "node"})
    for kind in KINDS:
        model = model_of(kind, schema)
        found = []
        for atom in (3, 4):
            x = torch.tensor([[0], [1], [2], [atom]])
            graph = Data(x=x, edge_index=edges, edge_attr=torch.ones(4).long())
            layer, batch = model.layers[0], batch_of([graph])
            with torch.no_grad():
                found.append(layer(model.embed_pairs(batch), steps(batch))[0])  # of the pair (0, 0)
        assert torch.allclose(*found) == (kind is Delta2Lgnn)


@pytest.mark.parametrize(("name", "labels"), [("zinc", 445), ("zinc-full", 652)])
@pytest.mark.parametrize(("form", "gins"), [("gnn", 4), ("lgnn", 2)])
def test_the_numbers_of_parameters_of_the_authors(name, labels, form, gins):
    """Their pairs begin as one of 445 or 652 labels, which only the first linear maps see; the rest is the same."""
    model = grit.build_model(grit.load_recipe(f"{name}-delta-2-{form}"))
    ours = sum(parameter.numel() for parameter in model.layers.parameters()) + gins * (labels - 256) * 256
    ours += sum(parameter.numel() for parameter in model.head.parameters())

    def linear(a, b):
        return a * b + b

    rounds = [gins * (linear(width, 256) + linear(256, 256) + 1) for width in (labels, 256, 256, 256)]
    others = 4 * (linear(gins * 256, 256) + linear(256, 256) + 2 * 256)
    assert ours == sum(rounds) + others + linear(1024, 256) + 2 * linear(256, 256) + linear(256, 1)


def test_pairs_that_are_not_all_are_refused():
    with pytest.raises(grit.GritError, match="reads pairs of the kind all, not edges: set model.pairs=all"):
        grit.load_recipe("zinc-delta-2-gnn", "model.pairs=edges")
