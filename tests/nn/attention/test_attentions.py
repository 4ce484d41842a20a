"""Every entry of ATTENTIONS keeps the rules of the table (`grit.testing.check_attention`), on graphs of every awkward kind."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

import grit
from grit.graphs.convert import pack
from grit.nn.attention import ATTENTIONS
from grit.testing import check_attention
from tests.graph_strategies import graphs

pytestmark = pytest.mark.parametrize("name", sorted(ATTENTIONS))


def test_the_rules_on_the_fixed_graphs(name):
    check_attention(name)


@settings(max_examples=15)
@given(data_list=st.lists(graphs(max_nodes=5), min_size=1, max_size=3))
def test_the_rules(name, data_list):
    check_attention(name, graphs=data_list)


def without_edges(nodes):
    return grit.choose_pairs(pack([Data(edge_index=torch.zeros(2, 0, dtype=torch.int64), num_nodes=nodes)]))


def test_without_a_clamp_one_key_can_have_nearly_all_the_weight(name):
    torch.manual_seed(0)
    attention = ATTENTIONS[name](hidden_dim=8, num_heads=2, clamp=None).double()
    x, pair = 1e3 * torch.randn(4, 8).double(), 1e3 * torch.randn(16, 8).double()
    assert attention(x, pair, without_edges(4)).weights.max() > 0.5


@pytest.mark.parametrize(("nodes", "rows"), [(2, 9), (4, 9), (3, 8), (3, 10)])
def test_rows_that_do_not_fit_the_pairs_are_named(name, nodes, rows):
    attention = ATTENTIONS[name](hidden_dim=8, num_heads=2)
    message = f"x has {nodes} rows and pair {rows}, but there are 3 nodes and 9 pairs"
    with pytest.raises(grit.GritError, match=message):
        attention(torch.randn(nodes, 8), torch.randn(rows, 8), without_edges(3))
