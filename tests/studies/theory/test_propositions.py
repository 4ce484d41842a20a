import json
from itertools import pairwise
from math import exp

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given

from grit.studies import STUDIES, Workbench
from grit.studies.theory.checks import Check, checks_table
from grit.studies.theory.proposition_1 import (
    check_propagations,
    heat_coefficients,
    make_case,
    pagerank_coefficients,
    shortest_path_network,
)
from grit.studies.theory.proposition_3 import check_batch_norm, check_layer_norm
from tests.graph_strategies import graphs


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    bench = Workbench(tmp_path_factory.mktemp("propositions"), "smoke")
    STUDIES["propositions"].run(bench)
    return bench


def rows(bench: Workbench, number: int) -> dict[str, dict]:
    tree = json.loads((bench.folder / f"proposition-{number}.json").read_text())
    return {row["claim"]: row for row in tree["rows"]}


def test_every_verdict_is_as_it_must_be(smoke):
    for number in (1, 2, 3):
        verdicts = {row["verdict"] for row in rows(smoke, number).values()}
        assert verdicts == {"holds", "fails, as expected"}


def test_the_printed_mistakes_fail(smoke):
    first = rows(smoke, 1)
    assert first["(a) corrected ReLU network equals SPD"]["verdict"] == "holds"
    assert first["(a) printed: n - Σ from t=1 equals SPD"]["verdict"] == "fails, as expected"
    assert first["(a) K - Σ from t=1 equals SPD"]["measured"].startswith("diagonal 0/")
    (printed,) = [row for claim, row in first.items() if "as printed" in claim]
    errors = [float(error) for error in printed["measured"].split(" → ")]
    assert errors[-1] > 3 * errors[0]


def test_the_papers_witness(smoke):
    second = rows(smoke, 2)
    assert second["pairs of nodes without a walk of 5 steps: none / many"]["measured"] == "0 / 200"
    assert second["walks of 5 steps are needed for it"]["measured"] == "K=4; without a walk of 3: 100 / 220"


def test_verdicts():
    assert Check("", 0, "", holds=True).verdict == "holds"
    assert Check("", 0, "", holds=False, should_hold=False).verdict == "fails, as expected"
    assert Check("", 0, "", holds=False).verdict == "UNEXPECTED: fails"
    assert Check("", 0, "", holds=True, should_hold=False).verdict == "UNEXPECTED: holds"
    stored = json.loads(json.dumps([Check("claim", 1.5, "more", False)]))  # as a piece comes back from disk
    assert checks_table("", stored).rows == [["claim", 1.5, "more", "UNEXPECTED: fails"]]


def test_the_network_on_a_path():
    graph = nx.to_numpy_array(nx.path_graph(5), dtype=np.int64)
    walks = make_case(graph, 4).walks
    network = shortest_path_network(4, smallest=float(walks[walks > 0].min()))
    distance = network(walks)[..., 0].detach()
    assert distance[0].tolist() == pytest.approx([0, 1, 2, 3, 4])  # 4 = K is beyond three steps
    assert distance[2].tolist() == pytest.approx([2, 1, 0, 1, 2])


@given(graphs(undirected=True, simple=True))
def test_the_network_gives_shortest_paths(data):
    graph = np.zeros((data.num_nodes, data.num_nodes), dtype=np.int64)
    graph[tuple(data.edge_index.numpy())] = 1
    lengths = dict(nx.all_pairs_shortest_path_length(nx.from_numpy_array(graph)))
    for walk_steps in (1, 3, data.num_nodes):
        walks = make_case(graph, walk_steps).walks
        network = shortest_path_network(walk_steps, smallest=float(walks[walks > 0].min()))
        expected = [
            [min(lengths[i].get(j, walk_steps), walk_steps) for j in range(data.num_nodes)]
            for i in range(data.num_nodes)
        ]
        torch.testing.assert_close(network(walks)[..., 0].detach(), torch.tensor(expected).double(), rtol=0, atol=1e-9)


def test_a_threshold_that_is_too_high_breaks_the_network():
    graph = nx.to_numpy_array(nx.star_graph(6), dtype=np.int64)
    case = make_case(graph, 3)
    wrong = shortest_path_network(3, smallest=0.5)(case.walks)[..., 0].detach()
    assert (wrong - case.distance).abs().max() > 0.1


def test_coefficients():
    assert pagerank_coefficients(3, 0.2).tolist() == pytest.approx([0.2, 0.16, 0.128])
    assert heat_coefficients(3, 2.0).tolist() == pytest.approx([exp(-2), 2 * exp(-2), 2 * exp(-2)])


def test_errors_stay_below_bounds_and_fall():
    errors = [check.measured for check in check_propagations(4) if check.claim.startswith("(b) PageRank, α")]
    assert len(errors) == 4
    assert all(0 < after < before / 2 for before, after in pairwise(errors))


def test_layer_norm_and_its_limits():
    checks = check_layer_norm()
    kept = [check for check in checks if check.should_hold]
    beyond = [check for check in checks if not check.should_hold]
    assert len(kept) == 4
    assert all(check.measured < 1e-13 for check in kept)
    assert all(check.measured > 1e-6 for check in beyond)
    offset, tiny = [check.measured for check in beyond if "ε" in check.claim]
    assert offset < 1e-3 < 1 < tiny


def test_batch_norm_keeps_the_degree():
    kept, removed = check_batch_norm()
    assert kept.measured > 0.9
    assert removed.measured < 1e-4
