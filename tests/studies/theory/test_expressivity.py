import json
from itertools import combinations

import networkx as nx
import numpy as np
import pytest

from grit.studies import STUDIES, Workbench
from grit.studies.systems import find_systems
from grit.studies.theory import expressivity
from grit.studies.theory.gdwl import edges, gdwl, shortest_paths, undistinguished, walks
from grit.studies.theory.hard_graphs import (
    atlas,
    connected_cubic_graphs,
    csl_graphs,
    srg_25_12_5_6,
    srg_parameters,
    switch,
    witness_pairs,
)
from grit.studies.theory.output_gap import GAP_FLOOR, output_gap, renumbered


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    bench = Workbench(tmp_path_factory.mktemp("expressivity"), "smoke")
    STUDIES["expressivity"].run(bench)
    return bench


def rows(bench: Workbench, name: str) -> list[dict]:
    return json.loads((bench.folder / f"{name}.json").read_text())["rows"]


def test_the_study_agrees(smoke):
    for name in ("pairs", "families", "gaps", "systems"):
        verdicts = [row["verdict"] for row in rows(smoke, name)]
        assert "agrees" in verdicts
        assert set(verdicts) <= {"agrees", "no expected value", "no bound claimed"}


def test_every_system_meets_every_pair(smoke):
    found = {row["recipe"]: row for row in rows(smoke, "systems")}
    assert set(found) == set(find_systems("zinc"))
    assert found["zinc"]["bound"] == "GD-WL, RRWP K=21"
    for pair in expressivity.SMOKE_PAIRS:
        assert (found["zinc"][pair] == "no") == (pair == "Shrikhande / rook 4x4")


def test_the_study_says_what_walks_cannot_do(smoke):
    found = {row["pair"]: row for row in rows(smoke, "pairs")}
    assert found["Dodecahedron / Desargues"]["SPD"] == "no"
    assert found["Dodecahedron / Desargues"]["RRWP"] == "K=4"
    assert found["Q4 / Hoffman"]["RWSE"] == "no"
    assert found["Shrikhande / rook 4x4"]["RRWP"] == "no"
    assert "cannot tell apart, with K = n: Shrikhande / rook 4x4." in (smoke.folder / "pairs.md").read_text()


def test_expected_values_are_compared_and_never_used(smoke, monkeypatch):
    name = "triangular prism / K3,3"
    ours = expressivity.examine(witness_pairs()[name])
    assert ours == [False, False, True, 3, 4, True]
    monkeypatch.setitem(expressivity.EXPECTED_PAIRS, name, (False, False, True, 2, 4, True))
    assert expressivity.examine(witness_pairs()[name]) == ours
    (row,) = expressivity.pairs_table({name: ours}, {name: 6}).rows
    assert row[-1] == "DIFFERS"
    gap = {"encoding": "rrwp", "walk_steps": 3, "apart": True, "gap": 1e-16, "renumbered": 1e-16}
    assert expressivity.gaps_table({name: [gap]}).rows[0][-1] == "DIFFERS"


def test_an_interrupted_study_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(expressivity, "SMOKE_PAIRS", ("triangular prism / K3,3",))
    monkeypatch.setattr(expressivity, "families", lambda budget: {})
    expressivity.run(Workbench(tmp_path, "smoke"))

    def never(*_):
        raise AssertionError("computed twice")

    monkeypatch.setattr(expressivity, "examine", never)
    monkeypatch.setattr(expressivity, "measure_gaps", never)
    monkeypatch.setattr(expressivity, "compare_pairs", never)
    expressivity.run(Workbench(tmp_path, "smoke"))


@pytest.mark.parametrize("name", expressivity.EXPECTED_PAIRS)
def test_witnesses_are_not_isomorphic_and_the_same_to_1wl(name):
    one, other = witness_pairs()[name]
    assert not nx.is_isomorphic(nx.from_numpy_array(one), nx.from_numpy_array(other))
    assert len(set(gdwl([one, other], edges))) == 1
    for graph in (one, other):
        assert (graph == graph.T).all()
        assert not graph.diagonal().any()


def test_witnesses_are_what_they_are_called():
    pairs = witness_pairs()
    assert nx.is_isomorphic(nx.from_numpy_array(pairs["decalin / bicyclopentyl"][0]), nx.Graph(_rings(6, shared=True)))
    assert nx.is_isomorphic(nx.from_numpy_array(pairs["decalin / bicyclopentyl"][1]), nx.Graph(_rings(5, shared=False)))
    hypercube, hoffman = pairs["Q4 / Hoffman"]
    assert np.linalg.eigvalsh(hypercube) == pytest.approx(np.linalg.eigvalsh(hoffman), abs=1e-9)
    assert {srg_parameters(graph) for graph in pairs["Shrikhande / rook 4x4"]} == {(16, 6, 2, 2)}
    triangular = pairs["T(8) / Chang 1"][0]
    chang = [pairs[f"T(8) / Chang {c}"][1] for c in (1, 2, 3)]
    assert {srg_parameters(graph) for graph in (triangular, *chang)} == {(28, 12, 6, 4)}
    for one, other in combinations(chang, 2):
        assert not nx.is_isomorphic(nx.from_numpy_array(one), nx.from_numpy_array(other))


def _rings(size: int, shared: bool) -> list[tuple[int, int]]:
    first = list(range(size))
    second = [0, size - 1, *range(size, 2 * size - 2)] if shared else list(range(size, 2 * size))
    around = [(ring[v], ring[v - 1]) for ring in (first, second) for v in range(size)]
    return around if shared else [*around, (first[0], second[0])]


def test_all_fifteen_strongly_regular_graphs():
    found = srg_25_12_5_6()
    assert len(found) == 15
    assert {srg_parameters(graph) for graph in found} == {(25, 12, 5, 6)}
    cliques = [_cliques_per_node(graph) for graph in found]
    assert len(set(cliques)) > 5  # not one graph fifteen times
    assert undistinguished(gdwl(found, shortest_paths)) == 105
    assert undistinguished(gdwl(found, walks(25))) == 105


def _cliques_per_node(graph: np.ndarray) -> tuple[int, ...]:
    counts = np.zeros(len(graph), dtype=int)
    for clique in nx.find_cliques(nx.from_numpy_array(graph)):
        counts[clique] += len(clique) ** 3
    return tuple(sorted(counts.tolist()))


def test_strong_regularity_is_checked():
    petersen = nx.to_numpy_array(nx.petersen_graph(), dtype=np.int64)
    assert srg_parameters(petersen) == (10, 3, 0, 1)
    assert srg_parameters(nx.to_numpy_array(nx.dodecahedral_graph(), dtype=np.int64)) is None
    assert srg_parameters(switch(petersen, [0])) is None


@pytest.mark.parametrize(("num_nodes", "count"), [(6, 2), (8, 5), (10, 19)])
def test_numbers_of_connected_cubic_graphs(num_nodes, count):
    found = connected_cubic_graphs(num_nodes)
    assert len(found) == count
    assert all((graph.sum(1) == 3).all() and nx.is_connected(nx.from_numpy_array(graph)) for graph in found)
    for one, other in combinations(found, 2):
        assert not nx.is_isomorphic(nx.from_numpy_array(one), nx.from_numpy_array(other))


def test_circular_skip_links():
    found = csl_graphs()
    classes = gdwl(found, shortest_paths)
    assert undistinguished(classes) == 1
    assert undistinguished(gdwl(found, walks(5))) == 0
    assert undistinguished(gdwl(found, edges)) == 45


def test_the_atlas():
    assert len(atlas(7)) == 1251
    graphs = atlas(6)
    assert len(graphs) == 207
    assert undistinguished(gdwl(graphs, walks(3))) == 0
    assert undistinguished(gdwl(graphs, walks(2))) == undistinguished(gdwl(graphs, edges)) > 0


def test_gaps_of_random_models():
    prism, bipartite = witness_pairs()["triangular prism / K3,3"]
    assert output_gap(prism, bipartite, "rrwp", 3) > 1e-4
    assert output_gap(prism, bipartite, "rrwp", 2) < GAP_FLOOR
    assert output_gap(prism, bipartite, "spd", 6) < GAP_FLOOR
    moved = renumbered(prism)
    assert (moved != prism).any()
    assert output_gap(prism, moved, "rrwp", 6) < GAP_FLOOR


@pytest.mark.slow
def test_the_whole_study(tmp_path):
    STUDIES["expressivity"].run(bench := Workbench(tmp_path, "small"))
    families = {(row["family"], row["measured"]): row for row in rows(bench, "families")}
    for name in ("pairs", "families", "gaps", "systems"):
        assert {row["verdict"] for row in rows(bench, name)} <= {"agrees", "no expected value", "no bound claimed"}
    assert families["all graphs with 2..7 nodes", "pairs not told apart by SPD"]["ours"] == 16
    assert families["connected cubic, 12 nodes", "graphs"]["ours"] == 85
    assert families["connected cubic, 12 nodes", "pairs not told apart by SPD"]["ours"] == 11
    assert families["connected cubic, 12 nodes", "pairs not told apart by RRWP, K=3"]["ours"] == 9


@pytest.mark.slow
def test_no_two_of_the_fifteen_are_isomorphic():
    for one, other in combinations(map(nx.from_numpy_array, srg_25_12_5_6()), 2):
        assert not nx.is_isomorphic(one, other)
