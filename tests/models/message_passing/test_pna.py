"""PNA: its 12 aggregations by hand, and the whole model in plain loops."""

from math import log, sqrt

import pytest
import torch
import torch.nn.functional as F

import grit
from grit.models import Pna
from grit.models.message_passing.pna import mean_log_degree, principal_aggregation
from tests.models.by_hand import SCHEMA, batch_of, embed, norm, with_own_norms
from tests.models.by_hand import WITH_DIRECTED as GRAPHS
from tests.models.message_passing.test_gcn import neighbours

HISTOGRAM = [1, 4, 3, 2]


def test_the_mean_of_the_logarithms_of_degrees():
    assert mean_log_degree(HISTOGRAM) == pytest.approx((4 * log(2) + 3 * log(3) + 2 * log(4)) / 10)
    assert mean_log_degree([7]) == 1.0


def test_four_aggregations_times_three_scalers():
    """Node 0 gets 1, 2 and 6; node 1 gets 5; node 2 gets nothing."""
    messages = torch.tensor([1.0, 5.0, 6.0, 2.0], dtype=torch.float64).view(4, 1, 1)
    delta = mean_log_degree(HISTOGRAM)
    found = principal_aggregation(messages, torch.tensor([0, 1, 0, 0]), 3, delta)
    assert found.shape == (3, 1, 12)
    of_zero = [3.0, 6.0, 1.0, sqrt((4 + 1 + 9) / 3 + 1e-5)]
    of_one = [5.0, 5.0, 5.0, sqrt(1e-5)]
    for row, values, d in ((0, of_zero, 3), (1, of_one, 1)):
        scale = log(d + 1) / delta
        wanted = [*values, *(value * scale for value in values), *(value / scale for value in values)]
        torch.testing.assert_close(found[row, 0], torch.tensor(wanted, dtype=torch.float64))
    assert (found[2] == 0).all()


@torch.no_grad()
def test_pna():
    """Two towers of 3 channels; the second layer is narrower and has no residual."""
    model = with_own_norms(Pna(SCHEMA, HISTOGRAM, num_layers=2, hidden_dim=6, output_dim=4, edge_dim=5, num_towers=2))
    for values in model.layers.parameters():
        values.copy_(torch.randn_like(values))
    delta, found = mean_log_degree(HISTOGRAM), model(batch_of(GRAPHS))
    for number, graph in enumerate(GRAPHS):
        x, bonds = embed(model.node, graph.x), embed(model.edge, graph.edge_attr)
        for layer in model.layers:
            towers = []
            for h in range(2):
                own = x[:, 3 * h : 3 * h + 3]
                rows = []
                for node, sources in enumerate(neighbours(graph)):
                    edges = [e for e, target in enumerate(graph.edge_index[1].tolist()) if target == node]
                    parts = [
                        torch.cat([own[j], own[node], bonds[e]]) @ layer.before.weight[h] + layer.before.bias[h]
                        for j, e in zip(sources, edges, strict=True)
                    ]
                    combined = torch.zeros(36, dtype=torch.float64)
                    if parts:
                        m = torch.stack(parts)
                        deviation = (m.var(0, correction=0) + 1e-5).sqrt()
                        four = torch.cat([m.mean(0), m.max(0).values, m.min(0).values, deviation])
                        scale = log(len(parts) + 1) / delta
                        combined = torch.cat([four, four * scale, four / scale])
                    rows.append(torch.cat([own[node], combined]) @ layer.after.weight[h] + layer.after.bias[h])
                towers.append(torch.stack(rows))
            y = norm(layer.norm, torch.cat(towers, 1) / sqrt(graph.num_nodes))
            y = F.leaky_relu(y @ layer.mix.weight[0] + layer.mix.bias[0], 0.01)
            x = x + y if y.shape == x.shape else y
        torch.testing.assert_close(found[number], model.output.head(x.sum(0, keepdim=True))[0])


def test_towers_that_do_not_divide_a_width_are_refused():
    with pytest.raises(grit.GritError, match="num_towers 5 must divide output_dim 63"):
        grit.load_recipe("zinc-pna", "model.output_dim=63")
