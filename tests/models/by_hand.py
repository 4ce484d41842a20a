"""What tests that compute a model by hand share: small graphs and batches, and models whose numbers a hand can follow."""

import torch
from torch import nn
from torch_geometric.data import Data

import grit
from grit.graphs.schema import Features, GraphSchema
from grit.nn.heads import HalvingHead
from tests.training.small import small_graphs

SCHEMA = GraphSchema(
    node=Features(kind="category", sizes=(21,)), edge=Features(kind="category", sizes=(4,)), num_outputs=2
)
PLAIN = GraphSchema(node=Features(kind="none"), edge=Features(kind="none"), num_outputs=2)
GRAPHS = small_graphs(9)[1:]
# Directed and parallel edges, a self-loop and a node without edges.
DIRECTED = Data(
    x=torch.tensor([[3], [1], [4], [1], [5]]),
    edge_index=torch.tensor([[0, 0, 1, 2, 2, 1], [1, 1, 2, 2, 0, 3]]),
    edge_attr=torch.tensor([1, 2, 3, 1, 2, 3]),
    y=torch.tensor([0.5]),
)
WITH_DIRECTED = [*GRAPHS, DIRECTED]


def batch_of(graphs, encoding="none", walk_steps=1, dtype=torch.float64, **options):
    return grit.PairBatch.from_data_list(graphs, walk_steps, encoding=encoding, dtype=dtype, **options)


def with_own_norms(model):
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
    model = with_own_norms(model)
    for parameter in model.parameters():
        parameter.data.copy_(torch.randn_like(parameter) * 0.3)
    return model


def wake(model):
    """Lift the hidden rows of the head: where a ReLU is 0 for every graph, whatever was computed before it looks right."""
    for head in model.modules():
        if isinstance(head, HalvingHead):
            for linear in head.linears[:-1]:
                linear.weight.data.abs_()
                linear.bias.data.fill_(8.0)
    return model


def norm(module, x):
    return (x - module.running_mean) / torch.sqrt(module.running_var + module.eps) * module.weight + module.bias


def embed(encoder, values):
    (table,) = encoder.parameters()
    return table[values.flatten()]


def messages(x, edge, edge_index):
    """Σ_j ReLU(x_j + e_ji), edge by edge."""
    total = torch.zeros_like(x)
    for (source, target), each in zip(edge_index.T.tolist(), edge, strict=True):
        total[target] += (x[source] + each).clamp(min=0)
    return total


def undirected(edges, num_nodes, x=None):
    """A graph with features: all alike, unless they are given."""
    there = torch.tensor(edges).t()
    edge_index = torch.cat([there, there.flip(0)], 1)
    return Data(
        x=torch.zeros(num_nodes, 1, dtype=torch.int64) if x is None else x,
        edge_index=edge_index,
        edge_attr=torch.ones(edge_index.shape[1], dtype=torch.int64),
    )


def of_matrix(adjacency):
    """The graph of an adjacency matrix, all nodes and all edges of one type."""
    adjacency = torch.as_tensor(adjacency)
    edge_index = adjacency.nonzero().t().contiguous()
    return Data(
        x=torch.zeros(len(adjacency), 1, dtype=torch.int64),
        edge_index=edge_index,
        edge_attr=torch.ones(edge_index.shape[1], 1, dtype=torch.int64),
    )


def cycles(*sizes):
    """One graph that is made of cycles."""
    edges, first = [], 0
    for size in sizes:
        edges += [(first + i, first + (i + 1) % size) for i in range(size)]
        first += size
    return undirected(edges, first)
