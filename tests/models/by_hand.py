"""What tests of models by hand share: graphs from matrices, small batches, norms that are not the identity."""

import torch
from torch import nn
from torch_geometric.data import Data

import grit
from grit.graphs.schema import Features, GraphSchema
from tests.training.small import small_graphs

SCHEMA = GraphSchema(
    node=Features(kind="category", sizes=(21,)), edge=Features(kind="category", sizes=(4,)), num_outputs=2
)
PLAIN = GraphSchema(node=Features(kind="none"), edge=Features(kind="none"), num_outputs=2)
GRAPHS = small_graphs(9)[1:]


def with_own_norms(model):
    """In double precision, in evaluation, and with norms that are not the identity."""
    model = model.double().eval()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d):
            for values in (module.weight.data, module.bias.data, module.running_mean, module.running_var):
                values.copy_(torch.rand_like(values) + 0.5)
    return model


def norm(module, x):
    return (x - module.running_mean) / torch.sqrt(module.running_var + module.eps) * module.weight + module.bias


def batch_of(graphs, **options):
    options = {"walk_steps": 1, "encoding": "none", "dtype": torch.float64} | options
    return grit.PairBatch.from_data_list(graphs, **options)


def of_matrix(adjacency):
    """The graph of an adjacency matrix, without features."""
    adjacency = torch.as_tensor(adjacency)
    return Data(edge_index=adjacency.nonzero().t().contiguous(), num_nodes=len(adjacency))
