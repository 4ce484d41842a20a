"""What the tests of these models share: small graphs, and models whose numbers a hand can follow."""

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


def batch_of(graphs, encoding="none", walk_steps=3, **keywords):
    return grit.PairBatch.from_data_list(graphs, walk_steps, encoding=encoding, dtype=torch.float64, **keywords)


def settled(model):
    """In double precision, in evaluation, and with norms that are not the identity."""
    torch.manual_seed(3)
    model = model.double().eval()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d):
            for values in (module.weight.data, module.bias.data, module.running_mean, module.running_var):
                values.copy_(torch.rand_like(values) + 0.5)
    return model


def with_larger_weights(model):
    """The same, with weights far from 0: what differs must show in the result."""
    model = settled(model)
    for parameter in model.parameters():
        parameter.data.copy_(torch.randn_like(parameter) * 0.3)
    return model


def norm(module, x):
    return (x - module.running_mean) / torch.sqrt(module.running_var + module.eps) * module.weight + module.bias


def embed(encoder, values):
    (table,) = encoder.parameters()
    return table[values.flatten()]


def undirected(adjacency):
    """A PyG graph from a symmetric matrix, all nodes and all edges of one type."""
    edges = torch.from_numpy(adjacency).nonzero().t()
    return Data(
        x=torch.zeros(len(adjacency), 1, dtype=torch.int64),
        edge_index=edges,
        edge_attr=torch.ones(edges.shape[1], 1, dtype=torch.int64),
    )
