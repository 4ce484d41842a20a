from dataclasses import replace
from math import log

import pytest
import torch

import grit
from grit.models import Dgn
from grit.models.blocks.directions import AGGREGATORS, Arriving
from tests.models.by_hand import GRAPHS, SCHEMA, batch_of, embed, norm, wake, with_own_norms

LAPLACIAN, DEGREES = "laplacian-unnormalised", [1, 4, 6, 2]
SMALL = {"walk_steps": 3, "degree_histogram": DEGREES, "num_layers": 2, "hidden_dim": 10, "out_dim": 8}


def aggregated(name, messages, field, h):
    """One node's aggregate; messages (k, C), field (k,)."""
    if not len(messages):
        return torch.zeros_like(h)
    weighted = (field[:, None] * messages).sum(0)
    return {
        "mean": messages.mean(0),
        "max": messages.max(0).values,
        "min": messages.min(0).values,
        "dir1-av": (field.abs()[:, None] * messages).sum(0),
        "dir1-dx": (weighted - field.sum() * h).abs(),
    }[name]


def tower_by_hand(layer, tower, names, h, edge, edge_index, vector, delta):
    """Channels of one tower before the norm, node by node."""
    width = h.shape[1]
    ends, nodes = layer.ends_map.weight[tower], layer.node_map.weight[tower]
    out = nodes.shape[1]
    of_edge = slice(tower * width, (tower + 1) * width)
    rows = []
    for i in range(h.shape[0]):
        into = [e for e, target in enumerate(edge_index[1].tolist()) if target == i]
        messages, difference = [], []
        for e in into:
            j = edge_index[0, e]
            from_edge = layer.edge_map.weight[of_edge] @ edge[e] + layer.edge_map.bias[of_edge]
            messages.append(h[j] @ ends[:, :width] + h[i] @ ends[:, width:] + from_edge)
            difference.append(vector[j] - vector[i])
        messages = torch.stack(messages) if into else h.new_zeros(0, width)
        field = torch.tensor(difference, dtype=torch.float64)
        field = field / (field.abs().sum() + 1e-8)
        together = torch.cat([aggregated(name, messages, field, h[i]) for name in names])
        scale = log(1 + max(1, len(into))) / delta
        full = torch.cat([h[i], together, together * scale, together / scale])
        rows.append(full @ nodes + layer.node_bias[tower * out : (tower + 1) * out])
    return torch.stack(rows)


def test_by_hand():
    names = "mean dir1-dx max min dir1-av"
    model = with_own_norms(Dgn(SCHEMA, **SMALL, aggregators=names, num_towers=2))
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)  # the authors' first weights are small enough to hide a mistake
    wake(model)
    batch = batch_of(GRAPHS, LAPLACIAN, 3)
    delta = (4 * log(2) + 6 * log(3) + 2 * log(4)) / 13
    with torch.no_grad():
        found = model(batch)
        assert found.std(0).min() > 0.1
        for number, graph in enumerate(GRAPHS):
            first, stop = batch.graphs.node_ptr[number : number + 2].tolist()
            vector = batch.node_encoding[first:stop, 1]
            h, edge = embed(model.node, graph.x), embed(model.edge, graph.edge_attr)
            for layer in model.layers:
                towers = [
                    tower_by_hand(layer, t, names.split(), part, edge, graph.edge_index, vector, delta)
                    for t, part in enumerate(h.chunk(2, 1))
                ]
                rows = layer.mixing(norm(layer.norm, torch.cat(towers, 1) / graph.num_nodes**0.5))
                rows = torch.where(rows > 0, rows, 0.01 * rows)
                h = h + rows if rows.shape == h.shape else rows
            torch.testing.assert_close(found[number], model.output.head(h.sum(0, keepdim=True))[0])


@pytest.mark.parametrize("aggregators", ["mean dir1-dx max min", "dir1-av dir2-dx dir2-av"])
@torch.no_grad()
def test_the_sign_of_an_eigenvector_makes_no_difference_but_its_direction_does(aggregators):
    model = with_own_norms(Dgn(SCHEMA, **{**SMALL, "hidden_dim": 75, "out_dim": 70}, aggregators=aggregators))
    batch = batch_of(GRAPHS, LAPLACIAN, 3)
    flipped = replace(batch, node_encoding=batch.node_encoding * torch.tensor([1, -1, -1, 1, 1, 1]))
    torch.testing.assert_close(model(flipped), model(batch), rtol=0, atol=1e-14)
    other = replace(batch, node_encoding=batch.node_encoding.roll(1, 0))
    assert not torch.allclose(model(other), model(batch), rtol=1e-9, atol=0)


def test_the_derivative_along_a_path():
    """Three nodes in a row with the features 0, 1, 3: at the middle, the mean of the steps 1 and 2 along the direction."""
    edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    h = torch.tensor([[0.0], [1.0], [3.0]])
    arriving = Arriving(h[edge_index[0]], edge_index, h, torch.tensor([[0.0, -1.0], [0.0, 0.0], [0.0, 1.0]]))
    torch.testing.assert_close(AGGREGATORS["dir1-dx"](arriving), torch.tensor([[1.0], [1.5], [2.0]]))
    torch.testing.assert_close(AGGREGATORS["dir1-av"](arriving), torch.tensor([[1.0], [1.5], [1.0]]))


@pytest.mark.parametrize(
    ("override", "message"),
    [
        (
            "model.aggregators=mean median",
            "model.aggregators: got 'mean median': a list with spaces between; there are mean",
        ),
        ("model.num_towers=4", "model: hidden_dim 75 is not divisible by num_towers 4"),
        ("encoding.name=rwse", "the model dgn reads the encoding laplacian-unnormalised or laplacian, not rwse"),
    ],
)
def test_options_that_cannot_be(override, message):
    with pytest.raises(grit.GritError, match=message):
        grit.load_recipe("zinc-dgn", override)


def test_too_few_eigenvectors():
    with pytest.raises(grit.GritError, match="dir2-dx need 3 eigenvectors.*set encoding.walk_steps=3, got 2"):
        Dgn(SCHEMA, **{**SMALL, "walk_steps": 2}, aggregators="dir2-dx")
