"""The contract that every entry of ATTENTIONS keeps."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import grit
from grit.graphs.convert import pack
from grit.nn.attention import ATTENTIONS
from tests.graph_strategies import graphs

pytestmark = pytest.mark.parametrize("name", sorted(ATTENTIONS))
ANY_GRAPHS = st.lists(graphs(max_nodes=5), min_size=1, max_size=3)


def setting(name, data_list, kind="all", seed=0, **options):
    torch.manual_seed(seed)
    packed = pack(data_list)
    pairs = grit.choose_pairs(packed, kind)
    attention = ATTENTIONS[name](hidden_dim=8, num_heads=2, **options).double()
    x = torch.randn(packed.num_nodes, 8, dtype=torch.float64)
    return attention, x, torch.randn(pairs.num_pairs, 8, dtype=torch.float64), pairs


@given(data_list=ANY_GRAPHS, kind=st.sampled_from(["all", "edges", "khop-2"]))
def test_shapes_and_rows_of_weights(name, data_list, kind):
    attention, x, pair, pairs = setting(name, data_list, kind)
    out = attention(x, pair, pairs)
    assert out.node.shape == x.shape
    assert out.weights.shape == (pairs.num_pairs, 2)
    assert (out.pair is not None) == attention.makes_pairs
    if out.pair is not None:
        assert out.pair.shape == pair.shape
    rows = torch.zeros(len(x), 2, dtype=torch.float64).index_add(0, pairs.query, out.weights)
    torch.testing.assert_close(rows, torch.ones_like(rows))


@given(data_list=ANY_GRAPHS)
def test_permutation_equivariance(name, data_list):
    attention, x, pair, pairs = setting(name, data_list)
    graph = pack(data_list).graph_of_node
    permutation = torch.cat([(graph == g).nonzero()[:, 0].flip(0) for g in range(int(graph[-1]) + 1)])
    moved_x = torch.empty_like(x)
    moved_x[permutation] = x
    at = pairs.find(query=permutation[pairs.query], key=permutation[pairs.key])
    moved_pair = torch.empty_like(pair)
    moved_pair[at] = pair
    out, moved = attention(x, pair, pairs), attention(moved_x, moved_pair, pairs)
    torch.testing.assert_close(moved.node[permutation], out.node)
    torch.testing.assert_close(moved.weights[at], out.weights)
    if out.pair is not None:
        torch.testing.assert_close(moved.pair[at], out.pair)


def test_every_parameter_and_input_has_a_gradient(name):
    from torch_geometric.data import Data

    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    attention, x, pair, pairs = setting(name, [Data(edge_index=edges, num_nodes=4)] * 2)
    x.requires_grad_()
    pair.requires_grad_()
    out = attention(x, pair, pairs)
    (out.node.sin().sum() + (0.0 if out.pair is None else out.pair.sum())).backward()
    assert (pair.grad is not None) == attention.reads_pairs
    for tensor in (x, *([pair] if attention.reads_pairs else []), *attention.parameters()):
        assert tensor.grad is not None
        assert torch.isfinite(tensor.grad).all()
        assert tensor.grad.abs().sum() > 0


def test_dropout_only_in_training_and_reproducible(name):
    from torch_geometric.data import Data

    attention, x, pair, pairs = setting(
        name, [Data(edge_index=torch.zeros(2, 0, dtype=torch.int64), num_nodes=6)], attention_dropout=0.5
    )
    outputs = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        outputs.append(attention(x, pair, pairs).node)
    assert torch.equal(outputs[0], outputs[1])
    assert not torch.equal(outputs[0], outputs[2])
    attention.eval()
    assert torch.equal(attention(x, pair, pairs).node, attention(x, pair, pairs).node)


def test_clamp_bounds_the_weights(name):
    from torch_geometric.data import Data

    data = Data(edge_index=torch.zeros(2, 0, dtype=torch.int64), num_nodes=4)
    attention, x, pair, pairs = setting(name, [data], clamp=0.01)
    weights = attention(1e3 * x, 1e3 * pair, pairs).weights
    assert weights.max() <= torch.exp(torch.tensor(0.02, dtype=torch.float64)) / 4 + 1e-12
    attention, x, pair, pairs = setting(name, [data], clamp=None)
    assert attention(1e3 * x, 1e3 * pair, pairs).weights.max() > 0.5


def test_weights_are_given_before_dropout(name):
    from torch_geometric.data import Data

    data = Data(edge_index=torch.zeros(2, 0, dtype=torch.int64), num_nodes=6)
    attention, x, pair, pairs = setting(name, [data], attention_dropout=0.5)
    dropped, whole = attention.train()(x, pair, pairs), attention.eval()(x, pair, pairs)
    assert not torch.equal(dropped.node, whole.node)
    assert torch.equal(dropped.weights, whole.weights)


@pytest.mark.parametrize(("nodes", "rows"), [(2, 9), (4, 9), (3, 8), (3, 10)])
def test_rows_must_fit_the_pairs(name, nodes, rows):
    from torch_geometric.data import Data

    attention, _, _, pairs = setting(name, [Data(edge_index=torch.zeros(2, 0, dtype=torch.int64), num_nodes=3)])
    message = f"x has {nodes} rows and pair {rows}, but there are 3 nodes and 9 pairs"
    with pytest.raises(grit.GritError, match=message):
        attention(torch.randn(nodes, 8).double(), torch.randn(rows, 8).double(), pairs)
