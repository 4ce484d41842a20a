"""The baselines beside a statement of their equations in plain matrices, node by node."""

import numpy as np
import torch
from torch import nn

import grit
from grit.datasets.molecules.smiles import morgan_fingerprint
from grit.graphs.schema import Features, GraphSchema, TaskSpec
from grit.models import Gine
from grit.training.forest import forest_outputs
from tests.training.small import small_graphs

SCHEMA = GraphSchema(
    node=Features(kind="category", sizes=(21,)), edge=Features(kind="category", sizes=(4,)), num_outputs=2
)
GRAPHS = small_graphs(4)[1:]


def with_own_norms(model):
    """In double precision, in evaluation, and with norms that are not the identity."""
    torch.manual_seed(3)
    model = model.double().eval()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d):
            for values in (module.weight.data, module.bias.data, module.running_mean, module.running_var):
                values.copy_(torch.rand_like(values) + 0.5)
    return model


def norm(module, x):
    return (x - module.running_mean) / torch.sqrt(module.running_var + module.eps) * module.weight + module.bias


def messages(x, edge, edge_index):
    """Σ_j ReLU(x_j + e_ji), edge by edge."""
    total = torch.zeros_like(x)
    for (source, target), each in zip(edge_index.T.tolist(), edge, strict=True):
        total[target] += (x[source] + each).clamp(min=0)
    return total


def embed(encoder, values):
    (table,) = encoder.parameters()
    return table[values.flatten()]


def batch_of(graphs):
    return grit.PairBatch.from_data_list(graphs, encoding="none", dtype=torch.float64)


def test_gine():
    model = with_own_norms(Gine(SCHEMA, num_layers=2))
    with torch.no_grad():
        found = model(batch_of(GRAPHS))
        for number, graph in enumerate(GRAPHS):
            x, edge = embed(model.node, graph.x), embed(model.edge, graph.edge_attr)
            for conv, each in zip(model.convs, model.norms, strict=True):
                first, _, second = conv.nn
                hidden = first((1 + conv.eps) * x + messages(x, edge, graph.edge_index)).clamp(min=0)
                x = x + norm(each, second(hidden)).clamp(min=0)
            torch.testing.assert_close(found[number], model.output.head(x.sum(0, keepdim=True))[0])


def test_the_seed_of_a_forest_matters_and_decides():
    x = np.stack([morgan_fingerprint("C" * (k % 8 + 1) + ("O" if k % 2 else "N")) for k in range(40)])
    noise = np.random.default_rng(0).normal(size=(30, 1))
    for task in (
        TaskSpec(kind="regression", targets=("a",), loss="l1", metric="mae"),
        TaskSpec(kind="binary", targets=("a",), classes=("0", "1"), loss="cross_entropy", metric="auroc"),
    ):
        y = noise if task.kind == "regression" else (noise > 0).astype(float)
        a, b, c = (forest_outputs(task, x[:30], y, x[30:], seed) for seed in (0, 0, 1))
        assert np.abs(a - b).max() < 1e-12  # trees are added up in any order
        assert np.abs(a - c).max() > 1e-3


def test_gine_as_described():
    model = Gine(SCHEMA)
    assert len(model.convs) == len(model.norms) == 4
    assert all(conv.eps.requires_grad for conv in model.convs)
    assert model.convs[0].nn[0].weight.shape == (64, 64)


def test_fingerprints_reach_two_bonds_far():
    """Around no atom do heptane and octane differ within two bonds; within three they do. Hexane differs within two."""
    hexane, heptane, octane = (morgan_fingerprint("C" * length) for length in (6, 7, 8))
    assert hexane.shape == (2048,)
    assert (heptane == octane).all()
    assert (hexane != heptane).any()
