"""MoNet in plain loops, and its kernels in numbers."""

from math import exp, sqrt, tanh

import torch

from grit.models import MoNet
from grit.models.message_passing.monet import MoNetLayer, degree_coordinates
from tests.models.by_hand import SCHEMA, batch_of, embed, norm, with_own_norms
from tests.models.by_hand import WITH_DIRECTED as GRAPHS


@torch.no_grad()
def test_monet():
    model = with_own_norms(MoNet(SCHEMA, num_layers=2, hidden_dim=12, num_kernels=3))
    for layer in model.layers:
        layer.bias.copy_(torch.rand(12))
        layer.inverse_width.copy_(torch.rand(3, 2) + 0.5)
    found = model(batch_of(GRAPHS))
    for number, graph in enumerate(GRAPHS):
        x = embed(model.node, graph.x)
        edges = graph.edge_index.T.tolist()
        d = [sum(target == node for _, target in edges) for node in range(graph.num_nodes)]
        for layer in model.layers:
            kernels = layer.linear.weight.view(3, 12, 12)
            mixed = torch.zeros_like(x)
            for source, target in edges:
                u = torch.tensor([1 / sqrt(d[source] + 1), 1 / sqrt(d[target] + 1)], dtype=torch.float64)
                u = torch.tanh(layer.coordinates.weight @ u + layer.coordinates.bias)
                for k in range(3):
                    away = ((u - layer.mean[k]) ** 2 * layer.inverse_width[k] ** 2).sum()
                    mixed[target] += torch.exp(-away / 2) * (kernels[k] @ x[source])
            x = x + norm(layer.norm, mixed).clamp(min=0) + layer.bias
        torch.testing.assert_close(found[number], model.output.head(x.mean(0, keepdim=True))[0])


@torch.no_grad()
def test_kernels_follow_the_degrees():
    """A star of three leaves: the centre has degree 3, the leaves 1. Coordinates as they are, two kernels."""
    edge_index = torch.tensor([[0, 1, 0, 2, 0, 3], [1, 0, 2, 0, 3, 0]])
    coordinates = degree_coordinates(edge_index, 4, torch.float64)
    outward, inward = [1 / 2, 1 / sqrt(2)], [1 / sqrt(2), 1 / 2]
    torch.testing.assert_close(coordinates, torch.tensor([outward, inward] * 3, dtype=torch.float64))
    layer = MoNetLayer(4, 2, 0.0).double()
    layer.coordinates.weight.copy_(torch.eye(2))
    layer.coordinates.bias.zero_()
    layer.mean.copy_(torch.tensor([[0.0, 0.0], [0.5, 0.1]]))
    layer.inverse_width.copy_(torch.tensor([[1.0, 1.0], [2.0, 3.0]]))
    a, b = tanh(1 / 2), tanh(1 / sqrt(2))
    wanted = [
        [exp(-(a**2 + b**2) / 2), exp(-((a - 0.5) ** 2 * 4 + (b - 0.1) ** 2 * 9) / 2)],
        [exp(-(a**2 + b**2) / 2), exp(-((b - 0.5) ** 2 * 4 + (a - 0.1) ** 2 * 9) / 2)],
    ]
    torch.testing.assert_close(layer.weights(coordinates), torch.tensor(wanted * 3, dtype=torch.float64))
