import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grit.errors import GritError
from grit.graphs.graph_files import GRAPHS, read_graph


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("g.csv", "source,target,weight\na,b,1\nb,c,2\n# no edge\n\na,b,1\n"),
        ("g.csv", "a,b\nb,c\n"),
        ("g.tsv", "from\tto\na\tb\nb\tc\n"),
        ("g.txt", "a b\nb c extra\n"),
        ("g.edgelist", "\ufeff# heading\na b\n b  c\n"),
    ],
)
def test_edge_lists(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    assert set(read_graph(tmp_path / name, 10).edges) == {("a", "b"), ("b", "c")}
    with pytest.raises(GritError, match="more than 2 nodes"):
        read_graph(tmp_path / name, 2)


@pytest.mark.parametrize(("ending", "write"), [("graphml", nx.write_graphml), ("gml", nx.write_gml)])
def test_graphml_and_gml_know_directions(tmp_path, ending, write):
    write(nx.MultiDiGraph([("a", "b"), ("a", "b"), ("b", "c")]), tmp_path / f"g.{ending}")
    graph = read_graph(tmp_path / f"g.{ending}", 10)
    assert list(graph.nodes) == ["a", "b", "c"]
    assert sorted(graph.edges) == [("a", "b"), ("b", "c")]
    assert graph.is_directed()


@pytest.mark.parametrize("ending", GRAPHS)
@given(content=st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_any_bytes_give_a_graph_or_our_own_error(ending, content, tmp_path_factory):
    path = tmp_path_factory.mktemp("any") / f"g{ending}"
    path.write_bytes(content)
    try:
        assert 0 < read_graph(path, 50).number_of_nodes() <= 50
    except GritError as error:
        assert str(path) in str(error)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("g.graphml", "<?xml version='1.0' encoding='wtf-8'?><graphml/>"),
        ("g.gml", 'graph [ node [ id 0 label "a" ] node [ id 1 id 2 label "b" ] ]'),
        ("g.gml", "graph [ node 3 ]"),
    ],
)
def test_damage_that_the_readers_stumble_over(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    with pytest.raises(GritError, match=f"{name}' is not a readable"):
        read_graph(tmp_path / name, 10)
