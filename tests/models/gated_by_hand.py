"""Small data, and what tests that compute a model node by node share."""

import torch
from torch import nn
from torch_geometric.data import Data

import grit
from grit.graphs.schema import Features, GraphSchema
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


def embed(encoder, values):
    (table,) = encoder.parameters()
    return table[values.flatten()]


def batch_of(graphs, encoding="none", walk_steps=1):
    return grit.PairBatch.from_data_list(graphs, walk_steps, encoding=encoding, dtype=torch.float64)


def undirected(edges, num_nodes, x=None):
    """A graph with features: all alike, unless they are given."""
    there = torch.tensor(edges).t()
    edge_index = torch.cat([there, there.flip(0)], 1)
    return Data(
        x=torch.zeros(num_nodes, 1, dtype=torch.int64) if x is None else x,
        edge_index=edge_index,
        edge_attr=torch.ones(edge_index.shape[1], dtype=torch.int64),
    )


def cycles(*sizes):
    """One graph that is made of cycles."""
    edges, first = [], 0
    for size in sizes:
        edges += [(first + i, first + (i + 1) % size) for i in range(size)]
        first += size
    return undirected(edges, first)
