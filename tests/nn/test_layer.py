import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

import grit
from grit import kernels
from grit.graphs.convert import pack
from grit.nn.layer import NORMS, DegreeScaler, GritLayer
from tests.golden import Case, assert_close
from tests.graph_strategies import graphs
from tests.nn.attention.test_grit import headwise_parts, released_attention

pytestmark = pytest.mark.usefixtures("each_form")

CASES = ["layer_d64h8", "layer_d24h3_clamped"]
PARTS = {
    "node_out": "O_h",
    "pair_out": "O_e",
    "node_norm": "batch_norm1_h",
    "pair_norm": "batch_norm1_e",
    "ffn_in": "FFN_h_layer1",
    "ffn_out": "FFN_h_layer2",
    "ffn_norm": "batch_norm2_h",
}


def released_layer(case):
    layer = GritLayer(hidden_dim=case.meta["D"], num_heads=case.meta["H"], clamp=case.meta["clamp"]).double()
    layer.attention.load_state_dict(released_attention(case, "sd.attention.").state_dict())
    layer.degree_scaler.theta.data.copy_(case["sd.deg_coef"][0].t())
    for ours, theirs in PARTS.items():
        layer.get_submodule(ours).load_state_dict(case.under(f"sd.{theirs}."))
    return layer.double()


@pytest.mark.parametrize("mode", ["eval", "train"])
@pytest.mark.parametrize("name", CASES)
def test_outputs_gradients_and_buffers_of_the_released_layer(name, mode):
    case = Case(name)
    layer = released_layer(case).train(mode == "train")
    pairs, order = case.pairs()
    x = case["in.x"].double().requires_grad_()
    pair = case["in.edge_attr"].double()[order].requires_grad_()
    x_out, pair_out = layer(x, pair, pairs, case["in.log_deg"].double())
    assert_close(x_out, case[f"{mode}64.x"], 1e-9)
    assert_close(pair_out, case[f"{mode}64.edge_attr"][order], 1e-9)
    loss = (x_out * case["loss.w_x"]).sum() + (pair_out * case["loss.w_e"][order]).sum()
    assert_close(loss, case[f"{mode}64.loss"], 1e-9)

    loss.backward()
    theirs = case.under(f"{mode}grad64.")
    assert_close(x.grad, theirs["in.x"], 1e-6)
    assert_close(pair.grad, theirs["in.edge_attr"][order], 1e-6)
    assert_close(layer.degree_scaler.theta.grad, theirs["deg_coef"][0].t(), 1e-6)
    scale, shift = headwise_parts(theirs["attention.E.weight"], case.meta["H"])
    assert_close(layer.attention.pair_scale.weight.grad, scale, 1e-6)
    assert_close(layer.attention.pair_shift.weight.grad, shift, 1e-6)
    scale_bias, shift_bias = headwise_parts(theirs["attention.E.bias"], case.meta["H"])
    assert_close(layer.attention.pair_scale.bias.grad, scale_bias, 1e-6)
    assert_close(layer.attention.pair_shift.bias.grad, shift_bias, 1e-6)
    assert_close(layer.attention.query.weight.grad, theirs["attention.Q.weight"], 1e-6)
    assert_close(layer.attention.query.bias.grad, theirs["attention.Q.bias"], 1e-6)
    assert_close(layer.attention.key.weight.grad, theirs["attention.K.weight"], 1e-6)
    assert_close(layer.attention.value.weight.grad, theirs["attention.V.weight"], 1e-6)
    assert_close(layer.attention.score.grad, theirs["attention.Aw"][:, :, 0].t(), 1e-6)
    assert_close(layer.attention.pair_value.grad, theirs["attention.VeRow"].transpose(0, 1), 1e-6)
    for ours, name_ in PARTS.items():
        for parameter_name, parameter in layer.get_submodule(ours).named_parameters():
            assert_close(parameter.grad, theirs[f"{name_}.{parameter_name}"], 1e-6)

    if mode == "train":
        for ours, name_ in PARTS.items():
            for buffer_name, buffer in layer.get_submodule(ours).named_buffers():
                assert_close(buffer, case[f"trainbuf64.{name_}.{buffer_name}"], 1e-9)


def random_setting(data_list, **options):
    torch.manual_seed(0)
    packed = pack(data_list)
    pairs = grit.choose_pairs(packed)
    layer = GritLayer(hidden_dim=8, num_heads=2, **options).double()
    for module in layer.modules():
        if isinstance(module, torch.nn.BatchNorm1d):
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2.0)
    x = torch.randn(packed.num_nodes, 8, dtype=torch.float64)
    pair = torch.randn(pairs.num_pairs, 8, dtype=torch.float64)
    return layer, x, pair, pairs, torch.log1p(packed.degree().double())


@pytest.mark.parametrize("norm", sorted(NORMS))
@given(data_list=st.lists(graphs(max_nodes=5), min_size=2, max_size=3))
def test_permutation_equivariance_in_training_and_evaluation(norm, data_list):
    layer, x, pair, pairs, log_degree = random_setting(data_list, norm=norm)
    graph = pack(data_list).graph_of_node
    permutation = torch.cat([(graph == g).nonzero()[:, 0].flip(0) for g in range(int(graph[-1]) + 1)])
    at = pairs.find(query=permutation[pairs.query], key=permutation[pairs.key])
    moved = [torch.empty_like(tensor) for tensor in (x, pair, log_degree)]
    moved[0][permutation], moved[1][at], moved[2][permutation] = x, pair, log_degree
    for mode in (True, False):
        layer.train(mode)
        x_out, pair_out = layer(x, pair, pairs, log_degree)
        moved_x, moved_pair = layer(moved[0], moved[1], pairs, moved[2])
        torch.testing.assert_close(moved_x[permutation], x_out)
        torch.testing.assert_close(moved_pair[at], pair_out)


def test_gradcheck_through_batch_norm():
    data = [
        Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=3),
        Data(edge_index=torch.tensor([[0], [1]]), num_nodes=2),
    ]
    layer, x, pair, pairs, log_degree = random_setting(data, clamp=None)
    layer.attention.pair_shift.bias.data.add_(20.0)  # away from the kinks of ReLU and of the square root
    layer.attention.query.bias.data.add_(10.0)
    layer.attention.pair_scale.bias.data.add_(10.0)
    layer.ffn_in.bias.data.add_(20.0)
    x, pair = (0.3 * x).requires_grad_(), (0.3 * pair).requires_grad_()
    assert torch.autograd.gradcheck(lambda a, b: layer(a, b, pairs, log_degree), (x, pair), atol=1e-6)


def test_degree_scaler():
    scaler = DegreeScaler(3)
    scaler.theta.data = torch.tensor([[1.0, 2.0, 3.0], [0.5, 0.0, -1.0]])
    out = scaler(torch.ones(2, 3), torch.tensor([0.0, 2.0]))
    assert torch.equal(out, torch.tensor([[1.0, 2.0, 3.0], [2.0, 2.0, 1.0]]))


def test_degree_scaler_starts_as_released():
    torch.manual_seed(0)
    theirs = torch.nn.init.xavier_normal_(torch.empty(1, 4096, 2))
    assert abs(DegreeScaler(4096).theta.std().item() / theirs.std().item() - 1) < 0.05


@torch.no_grad()
def calls(layer, *inputs):
    """Run the layer; input and output of every child, by name (each child is called once)."""
    seen, hooks = {}, []
    for name, module in layer.named_children():
        hooks.append(module.register_forward_hook(lambda _, got, out, name=name: seen.update({name: (got, out)})))
    with kernels.use("plain"):  # the fused form does not call the children one by one
        returned = layer(*inputs)
    for hook in hooks:
        hook.remove()
    return seen, returned


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("training", [True, False])
def test_where_dropout_is_and_where_it_is_not(activation, dropout, training):
    edges = torch.tensor([[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 5]])
    layer, *inputs = random_setting(
        [Data(edge_index=edges, num_nodes=n) for n in (6, 20)], dropout=dropout, activation=activation
    )
    seen, (x_out, pair_out) = calls(layer.train(training), *inputs)
    x, pair, _, log_degree = inputs
    attended = seen["attention"][1]
    hidden = layer.activation(seen["ffn_in"][1])
    probability = dropout if training else 0.0

    def assert_dropped(got, whole):
        kept = got != 0
        torch.testing.assert_close(got[kept], (whole / (1 - probability))[kept])
        there = kept[whole != 0]  # where a zero is the mask's
        deviation = (probability * (1 - probability) / there.numel()) ** 0.5
        assert abs(there.double().mean() - (1 - probability)) <= 4 * deviation

    assert_dropped(seen["degree_scaler"][0][0], attended.node)
    assert_dropped(seen["pair_out"][0][0], attended.pair)
    assert_dropped(seen["ffn_out"][0][0], hidden)
    # Everything between is the plain sum, without a mask of its own.
    torch.testing.assert_close(seen["degree_scaler"][0][1], log_degree)
    assert torch.equal(seen["node_out"][0][0], seen["degree_scaler"][1])
    assert torch.equal(seen["node_norm"][0][0], x + seen["node_out"][1])
    assert torch.equal(seen["ffn_in"][0][0], seen["node_norm"][1])
    assert torch.equal(seen["ffn_norm"][0][0], seen["node_norm"][1] + seen["ffn_out"][1])
    assert torch.equal(seen["pair_norm"][0][0], pair + seen["pair_out"][1])
    assert torch.equal(x_out, seen["ffn_norm"][1])
    assert torch.equal(pair_out, seen["pair_norm"][1])


def test_arguments_reach_the_attention():
    layer = GritLayer(hidden_dim=8, num_heads=4, dropout=0.1, attention_dropout=0.6, clamp=2.5)
    attention = layer.attention
    assert (attention.num_heads, attention.attention_dropout, attention.clamp) == (4, 0.6, 2.5)


@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_the_activation_of_the_ffn(activation):
    layer, *inputs = random_setting([Data(edge_index=torch.tensor([[0], [1]]), num_nodes=5)], activation=activation)
    seen, _ = calls(layer, *inputs)
    function = {"relu": torch.nn.ReLU(), "gelu": torch.nn.GELU()}[activation]
    torch.testing.assert_close(seen["ffn_out"][0][0], function(seen["ffn_in"][1]))


def test_linear_maps_and_norms_start_as_torch_has_them():
    torch.manual_seed(0)
    dim = 128
    layer = GritLayer(hidden_dim=dim, num_heads=4)
    for name, fan_in in (("node_out", dim), ("pair_out", dim), ("ffn_in", dim), ("ffn_out", 2 * dim)):
        linear, bound = layer.get_submodule(name), fan_in**-0.5
        for parameter in (linear.weight, linear.bias):
            assert 0.9 * bound < parameter.abs().max() <= bound, name
        assert abs(linear.weight.std().item() / (bound / 3**0.5) - 1) < 4 / linear.weight.numel() ** 0.5, name
    for name in ("node_norm", "pair_norm", "ffn_norm"):
        norm = layer.get_submodule(name)
        assert (norm.eps, norm.momentum) == (1e-5, 0.1)
        assert (norm.weight == 1).all()
        assert (norm.bias == 0).all()


@pytest.mark.parametrize(("nodes", "rows"), [(4, 9), (3, 8)])
def test_rows_must_fit_the_pairs(nodes, rows):
    layer, _, _, pairs, _ = random_setting([Data(edge_index=torch.zeros(2, 0, dtype=torch.int64), num_nodes=3)])
    with pytest.raises(grit.GritError, match=f"x has {nodes} rows and pair {rows}, but there are 3 nodes and 9 pairs"):
        layer(torch.randn(nodes, 8).double(), torch.randn(rows, 8).double(), pairs, torch.zeros(nodes).double())


def test_pairs_are_returned_as_given_without_update():
    layer, x, pair, pairs, log_degree = random_setting(
        [Data(edge_index=torch.zeros(2, 0, dtype=torch.int64), num_nodes=3)], update_pairs=False
    )
    assert layer(x, pair, pairs, log_degree)[1] is pair
    assert sum(p.numel() for p in layer.parameters()) == sum(
        p.numel() for p in GritLayer(hidden_dim=8, num_heads=2).parameters()
    )


def test_a_single_node_in_training():
    layer, x, pair, pairs, log_degree = random_setting(
        [Data(edge_index=torch.zeros(2, 0, dtype=torch.int64), num_nodes=1)]
    )
    with pytest.raises(grit.GritError, match="single node.*larger batch size.*norm='layer'"):
        layer(x, pair, pairs, log_degree)
    layer.eval()(x, pair, pairs, log_degree)
    layer, x, pair, pairs, log_degree = random_setting(
        [Data(edge_index=torch.zeros(2, 0, dtype=torch.int64), num_nodes=1)], norm="layer"
    )
    layer(x, pair, pairs, log_degree)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"attention": "gritty"}, "unknown attention 'gritty'; there are grit, "),
        ({"norm": "group"}, "unknown norm 'group'; there are batch, layer"),
        ({"activation": "swish"}, "unknown activation 'swish'; there are relu, gelu"),
        ({"attention": "graphormer"}, "update_pairs=False"),
        ({"num_heads": 3}, "hidden_dim 8 is not divisible by num_heads 3"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(grit.GritError, match=message):
        GritLayer(**{"hidden_dim": 8, "num_heads": 2, **options})


def test_a_degree_for_every_node():
    layer, x, pair, pairs, _ = random_setting([Data(edge_index=torch.zeros(2, 0, dtype=torch.int64), num_nodes=3)])
    with pytest.raises(grit.GritError, match=r"log_degree has shape \(1,\), expected one number for each of 3 nodes"):
        layer(x, pair, pairs, torch.zeros(1, dtype=torch.float64))
