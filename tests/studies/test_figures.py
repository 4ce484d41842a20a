import itertools
import json

import networkx as nx
import numpy as np
import pytest

from grit.drawing.compositions import attention_figure, graph_edges, joined_pairs, rrwp_figure
from grit.drawing.graph_drawing import GraphDrawing
from grit.drawing.molecule_drawing import MoleculeDrawing
from grit.studies import STUDIES, Workbench
from grit.studies.figures import petersen_positions, schlegel_positions, walks


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    bench = Workbench(tmp_path_factory.mktemp("figures"), budget="smoke")
    STUDIES["figures"].run(bench)
    return bench


def rows(bench, name):
    return json.loads((bench.folder / f"{name}.json").read_text())["rows"]


def test_every_figure_is_made_twice_and_has_a_table(bench):
    for name in ("fluorescein", "communities", "dodecahedron-desargues"):
        assert (bench.folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (bench.folder / f"{name}.svg").read_text()
        assert (bench.folder / f"{name}.md").exists()
    assert all(path.exists() for path in bench.made)
    assert len(bench.made) == 3 * 4


def test_fluorescein_has_the_expected_pairs(bench):
    found = rows(bench, "fluorescein")
    assert [row["ordered pairs"] for row in found] == [58, 90, 170, 224]
    assert all(row["equal"] for row in found)
    assert "C20H12O5, 25 atoms, 29 bonds" in (bench.folder / "fluorescein.md").read_text()


def test_walks_cover_the_communities(bench):
    found = rows(bench, "communities")
    within = [row["pairs joined within a block"] for row in found]
    between = [row["pairs joined between blocks"] for row in found]
    ratio = [row["mean probability within / between"] for row in found]
    assert within == pytest.approx([0.40, 0.82, 1.0, 1.0], abs=0.005)
    assert between == pytest.approx([0.02, 0.18, 0.66, 0.99], abs=0.005)
    assert (ratio[0], ratio[3]) == (pytest.approx(21.8, abs=0.05), pytest.approx(5.2, abs=0.05))


def test_five_steps_tell_the_cubic_graphs_apart(bench):
    found = rows(bench, "dodecahedron-desargues")
    assert [row["Dodecahedron"] for row in found] == [60, 140, 300, 380, 400]
    assert [row["Desargues graph"] for row in found] == [60, 140, 180, 200, 200]
    assert [row["tells them apart"] for row in found] == [False, False, True, True, True]


def test_walks_are_powers_of_the_walk_matrix():
    graph = nx.gnp_random_graph(12, 0.3, seed=1)
    graph.add_edge(3, 3)
    adjacency = nx.to_numpy_array(graph)
    found = walks(graph_edges(graph), 12, (1, 3))
    step = adjacency / np.maximum(adjacency.sum(1, keepdims=True), 1)
    assert found[..., 0] == pytest.approx(step)
    assert found[..., 1] == pytest.approx(step @ step @ step)
    counts = [np.linalg.matrix_power(adjacency.astype(int), k) for k in (1, 3)]
    assert joined_pairs(found) == [int(np.count_nonzero(each - np.diag(np.diag(each)))) for each in counts]


def test_directed_edges_keep_their_direction():
    assert graph_edges(nx.DiGraph([("a", "b")])).tolist() == [[0], [1]]
    assert graph_edges(nx.Graph([("a", "b")])).tolist() == [[0, 1], [1, 0]]
    assert graph_edges(nx.empty_graph(2)).shape == (2, 0)


def crosses(a, b, c, d):
    def side(p, q, r):
        return (q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0])

    return side(a, b, c) * side(a, b, d) < -1e-9 and side(c, d, a) * side(c, d, b) < -1e-9


def test_crossings_are_seen():
    assert crosses((0, 0), (1, 1), (0, 1), (1, 0))
    assert not crosses((0, 0), (1, 1), (0, 1), (0.2, 1))


def test_the_dodecahedron_is_drawn_without_crossings():
    graph = nx.dodecahedral_graph()
    places = schlegel_positions(graph, (2.4, 1.75, 1.2, 0.6))
    for one, other in itertools.combinations(graph.edges, 2):
        if not set(one) & set(other):
            assert not crosses(*places[list(one)], *places[list(other)])


def test_the_desargues_graph_is_drawn_as_two_rings():
    graph = nx.desargues_graph()
    places = petersen_positions(graph, 3)
    radius = np.linalg.norm(places, axis=1)
    assert sorted(set(radius.round(6))) == [1.45, 2.4]
    outer = [node for node in graph if radius[node] > 2]
    assert all(degree == 2 for _, degree in graph.subgraph(outer).degree)
    with pytest.raises(ValueError, match="not the generalised Petersen graph"):
        petersen_positions(graph, 2)


def test_a_figure_has_a_panel_for_each_length_and_one_scale():
    graph = nx.cycle_graph(5)
    steps = (1, 2, 3, 4, 5, 6)
    matrices = walks(graph_edges(graph), 5, steps)
    figure = rrwp_figure(GraphDrawing(graph), matrices, steps, with_matrices=True)
    assert len(figure.axes) == 6 + 6 + 1
    titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
    assert titles[0] == "1 step: 10 of 20 pairs"
    assert len(titles) == 6
    assert figure.axes[-1].get_ylabel() == "probability of the walk"
    assert figure.axes[-1].get_ylim()[1] == pytest.approx(matrices.max())


@pytest.mark.parametrize("smiles", ["CCCCCCCCO", "c1ccccc1O"])
def test_panels_of_the_attention_figure_do_not_overlap(smiles):
    drawing = MoleculeDrawing(smiles, numbers=True)
    n = len(drawing.positions)
    figure = attention_figure(drawing, np.full((n, n), 1 / n), 2, "layer 0")
    assert len(figure.axes) == 4
    for one, other in itertools.combinations(figure.axes, 2):
        assert not one.get_position().overlaps(other.get_position())
    assert figure.axes[1].get_title() == "what query C 2 gives to each atom"
    assert [label.get_text() for label in figure.axes[2].get_xticklabels()] == drawing.names
