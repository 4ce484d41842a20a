"""Every entry of ENCODINGS keeps the rules of the table (`grit.testing.check_encoding`), on graphs of every awkward kind."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import grit
from grit.encodings import ENCODINGS, encoding_kind
from grit.testing import check_encoding
from tests.graph_strategies import graphs, weighted_graphs

pytestmark = pytest.mark.parametrize("name", sorted(ENCODINGS))


def test_the_rules_on_the_fixed_graphs(name):
    check_encoding(name)


@settings(max_examples=25)
@given(data_list=st.lists(graphs(max_nodes=6), min_size=1, max_size=4), walk_steps=st.integers(1, 6))
def test_the_rules(name, data_list, walk_steps):
    check_encoding(name, graphs=data_list, walk_steps=(walk_steps,))


@settings(max_examples=25)
@given(data=weighted_graphs(max_nodes=6), walk_steps=st.integers(1, 6))
def test_the_rules_with_weights(name, data, walk_steps):
    """What weights do to walks is in the tests of RRWP."""
    check_encoding(name, graphs=[data], walk_steps=(walk_steps,))


def test_unknown_names_are_refused(name):
    with pytest.raises(grit.GritError, match=f"unknown encoding '{name}x'; there are .*{name}"):
        encoding_kind(f"{name}x")
    with pytest.raises(grit.GritError, match=f"unknown encoding '{name}x'; there are .*{name}"):
        check_encoding(f"{name}x")
