import pytest
import torch
from torch_geometric.data import Data

import grit
from grit.nn.heads import HEADS, READOUTS, HalvingHead, MLPHead, readout_class
from grit.testing import check_head


def batch_with_labels(pairs="all"):
    first = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
    second = Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
    for data in (first, second):
        data.edge_label_index = torch.tensor([[0, 1], [1, 0]])
        data.edge_label = torch.ones(2)
    return grit.PairBatch.from_data_list([first, second], walk_steps=2, pairs=pairs)


@pytest.mark.parametrize(("level", "pooling"), [(level, name) for level, names in READOUTS.items() for name in names])
def test_every_readout_gives_its_rows(level, pooling):
    batch = batch_with_labels()
    readout = readout_class(level, pooling)(4)
    rows = readout(torch.randn(5, 4), torch.randn(batch.num_pairs, 4), batch)
    assert rows.shape == ({"graph": 2, "node": 5, "edge": 4}[level], 4)


def test_pooling():
    batch = batch_with_labels()
    x = torch.arange(5.0).unsqueeze(1)
    assert readout_class("graph", "sum")(1)(x, x, batch).tolist() == [[1.0], [9.0]]
    assert readout_class("graph", "mean")(1)(x, x, batch).tolist() == [[0.5], [3.0]]


def test_edge_readout_reads_source_target_and_pair():
    batch = batch_with_labels()
    readout = readout_class("edge", "none")(4)
    x, pair = torch.randn(5, 4), torch.randn(batch.num_pairs, 4)
    rows = readout(x, pair, batch)
    # Label 2 is node 0 -> node 1 of the second graph: nodes 2 and 3; its pair has query 3, key 2.
    at = int(batch.pairs.find(torch.tensor([3]), torch.tensor([2])))
    wanted = torch.relu(readout.linear(torch.cat([x[2], x[3], pair[at]])))
    torch.testing.assert_close(rows[2], wanted)


def test_edge_readout_needs_its_pairs():
    readout = readout_class("edge", "none")(4)
    batch = batch_with_labels(pairs="edges")
    with pytest.raises(grit.GritError, match="sparse attention leaves out.*pairs='all'"):
        readout(torch.randn(5, 4), torch.randn(batch.num_pairs, 4), batch)
    unlabelled = grit.PairBatch.from_data_list([Data(edge_index=torch.zeros(2, 0).long(), num_nodes=2)])
    with pytest.raises(grit.GritError, match="needs the pairs to predict for"):
        readout(torch.randn(2, 4), torch.randn(4, 4), unlabelled)


def test_pooling_must_go_with_the_level():
    with pytest.raises(grit.GritError, match="graph-level predictions go with pooling sum or mean, got 'none'"):
        readout_class("graph", "none")
    with pytest.raises(grit.GritError, match="node-level predictions go with pooling none"):
        readout_class("node", "mean")


@pytest.mark.parametrize("name", sorted(HEADS))
def test_every_head(name):
    check_head(name)


@pytest.mark.parametrize("name", ["halving", "mlp"])
def test_the_released_heads_have_as_many_maps_as_layers(name):
    for layers in (1, 2, 3):
        head = HEADS[name](hidden_dim=16, num_outputs=5, num_layers=layers, activation="relu")
        assert sum(isinstance(module, torch.nn.Linear) for module in head.modules()) == layers


def test_halving_widths():
    head = HalvingHead(hidden_dim=64, num_outputs=1, num_layers=3, activation="relu")
    assert [tuple(linear.weight.shape) for linear in head.linears] == [(32, 64), (16, 32), (1, 16)]
    with pytest.raises(grit.GritError, match="cannot be halved 4 times"):
        HalvingHead(hidden_dim=8, num_outputs=1, num_layers=5, activation="relu")


@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_halving_head_activates_between_its_maps(activation):
    torch.manual_seed(0)
    head = HalvingHead(hidden_dim=16, num_outputs=2, num_layers=3, activation=activation).double()
    function = {"relu": lambda z: z.clamp(min=0), "gelu": torch.nn.GELU()}[activation]
    rows = 3 * torch.randn(6, 16).double()
    first, second, last = head.linears
    hidden = function(rows @ first.weight.t() + first.bias)
    hidden = function(hidden @ second.weight.t() + second.bias)
    wanted = hidden @ last.weight.t() + last.bias
    assert (wanted < 0).any()  # so that an activation after the last map would show
    torch.testing.assert_close(head(rows), wanted)


@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_mlp_head_activates_then_scales_after_every_hidden_map(activation):
    torch.manual_seed(0)
    head = MLPHead(hidden_dim=8, num_outputs=2, num_layers=3, activation=activation).double()
    function = {"relu": lambda z: z.clamp(min=0), "gelu": torch.nn.GELU()}[activation]
    rows = 3 * torch.randn(6, 8).double()
    hidden = rows
    for linear in head.hidden:
        hidden = function(hidden @ linear.weight.t() + linear.bias)
        hidden = hidden / hidden.square().sum(1, keepdim=True).sqrt()
    wanted = hidden @ head.out.weight.t() + head.out.bias
    assert (wanted < 0).any()
    torch.testing.assert_close(head(rows), wanted)


def test_heads_start_as_torch_has_them():
    torch.manual_seed(0)
    heads = [
        HEADS[name](hidden_dim=128, num_outputs=64, num_layers=2, activation="relu") for name in ("halving", "mlp")
    ]
    linears = [module for head in heads for module in head.modules() if isinstance(module, torch.nn.Linear)]
    for linear in [*linears, readout_class("edge", "none")(128).linear]:
        bound = linear.in_features**-0.5
        for parameter in (linear.weight, linear.bias):
            assert 0.9 * bound < parameter.abs().max() <= bound
        assert abs(linear.weight.std().item() / (bound / 3**0.5) - 1) < 4 / linear.weight.numel() ** 0.5


def test_mlp_head_scales_rows_to_length_one():
    torch.manual_seed(0)
    head = MLPHead(hidden_dim=4, num_outputs=2, num_layers=2, activation="relu")
    rows = torch.randn(3, 4)
    hidden = torch.relu(head.hidden[0](rows))
    torch.testing.assert_close(head(rows), head.out(hidden / hidden.norm(dim=1, keepdim=True)))
    zero = MLPHead(hidden_dim=4, num_outputs=2, num_layers=2, activation="relu")
    torch.nn.init.constant_(zero.hidden[0].bias, -100.0)
    torch.testing.assert_close(zero(rows), zero.out.bias.expand(3, -1))  # no division by zero
