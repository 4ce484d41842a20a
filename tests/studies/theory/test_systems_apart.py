import dataclasses
import json

import networkx as nx
import numpy as np
import pytest
import torch

import grit
from grit.models import MODELS, ModelKind
from grit.models.blocks import Draws
from grit.studies import Workbench
from grit.studies.systems import System
from grit.studies.theory import expressivity
from grit.studies.theory.hard_graphs import witness_pairs
from grit.studies.theory.systems_apart import Separation, bound_of, broken_bounds, compare_pairs, systems_table

NAMES = ("triangular prism / K3,3", "Q4 / Hoffman", "Shrikhande / rook 4x4")


@pytest.fixture(scope="module")
def pairs():
    return {name: witness_pairs()[name] for name in NAMES}


def system(title, *overrides, recipe="zinc"):
    return System(title, grit.load_recipe(recipe, *overrides))


def gine(*overrides):
    return system("GINE", "model.name=gine", "encoding.name=none", "encoding.walk_steps=1", *overrides)


def apart(found):
    return [comparison.is_apart for comparison in found.values()]


def test_message_passing_is_bounded_by_1wl(pairs):
    found = compare_pairs(gine(), pairs)
    assert apart(found) == [False, False, False]
    assert all(comparison.is_sure for comparison in found.values())
    assert bound_of(gine())[0] == "1-WL"


def test_encodings_decide_what_a_transformer_tells_apart(pairs):
    """As the exact tests say: GD-WL with RRWP, GD-WL with SPD, and the return probabilities alone."""
    assert apart(compare_pairs(system("GRIT"), pairs)) == [True, True, False]
    assert apart(compare_pairs(system("SPD", recipe="zinc-spd"), pairs)) == [False, True, False]
    assert apart(compare_pairs(system("GPS", recipe="zinc-gps"), pairs)) == [True, False, False]
    assert bound_of(system("GRIT"))[0] == "GD-WL, RRWP K=21"
    assert bound_of(system("SPD", recipe="zinc-spd"))[0] == "GD-WL, SPD"


def test_no_bound_is_claimed_with_an_encoding_or_a_structure(monkeypatch):
    assert bound_of(gine("encoding.name=rwse")) is None
    assert bound_of(system("RWSE", recipe="zinc-rwse")) is None
    with_rings = dataclasses.replace(MODELS["gine"], structures=lambda options: ("rings-6",))
    monkeypatch.setitem(MODELS, "gine", with_rings)
    assert bound_of(gine()) is None


def test_an_output_that_depends_on_the_numbering_is_not_judged(pairs):
    eigenvectors = system("LapPE", "encoding.name=laplacian", "encoding.walk_steps=4")
    comparison = compare_pairs(eigenvectors, {name: pairs[name] for name in NAMES[:1]})[NAMES[0]]
    assert not comparison.is_sure
    assert comparison.words == "?"


def test_both_graphs_of_a_pair_must_keep_their_output():
    """The first eigenvectors of a path are simple, those of a star are not, in whichever order the two come."""
    path, star = (nx.to_numpy_array(graph, dtype=np.int64) for graph in (nx.path_graph(6), nx.star_graph(5)))
    eigenvectors = system("LapPE", "encoding.name=laplacian", "encoding.walk_steps=3")
    found = compare_pairs(eigenvectors, {"one": (path, path), "two": (path, star), "three": (star, path)})
    assert [comparison.is_sure for comparison in found.values()] == [True, False, False]


class Lottery(Draws):
    """A number per node that is drawn, times how many neighbours of neighbours are neighbours."""

    def __init__(self, *, schema: grit.GraphSchema, sees_triangles: bool = False) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(schema.num_outputs))
        self.sees_triangles = sees_triangles

    def forward(self, batch):
        graphs = batch.graphs
        adjacency = torch.zeros(graphs.num_nodes, graphs.num_nodes, dtype=torch.float64)
        adjacency[graphs.edge_index[0], graphs.edge_index[1]] = 1
        triangles = (adjacency @ adjacency * adjacency).sum() if self.sees_triangles else 1.0
        drawn = self.uniform(graphs, 1, self.draw_seed()).mean()
        return (self.weight * drawn * (1 + triangles))[None]


def test_draws_are_judged_by_their_means(pairs, monkeypatch):
    monkeypatch.setitem(MODELS, "lottery", ModelKind(Lottery, levels=("graph",), draws=True))
    pair = {NAMES[0]: pairs[NAMES[0]]}  # the prism has triangles, K3,3 has none
    blind = compare_pairs(system("blind", "model.name=lottery"), pair)[NAMES[0]]
    seeing = compare_pairs(system("seeing", "model.name=lottery", "model.sees_triangles=true"), pair)[NAMES[0]]
    assert (blind.is_apart, blind.is_sure) == (False, True)
    assert (seeing.is_apart, seeing.is_sure) == (True, True)
    assert blind.words == "not seen"
    assert seeing.words.startswith("yes, ")


def test_a_graph_that_a_system_cannot_read_is_no_failure_of_the_study(pairs, monkeypatch):
    class Refuses(torch.nn.Module):
        def __init__(self, *, schema: grit.GraphSchema) -> None:
            super().__init__()

        def forward(self, batch):
            if batch.num_nodes == 16:
                raise grit.GritError("too many rings")
            return torch.ones(1, 16, dtype=torch.float64)

    monkeypatch.setitem(MODELS, "refuses", ModelKind(Refuses))
    refuses = system("Refuses", "model.name=refuses")
    found = compare_pairs(refuses, pairs)
    table = systems_table({"refuses": refuses}, {"refuses": found}, pairs)
    assert [found[name].words for name in NAMES] == ["no", "–", "–"]
    assert "–: Refuses on Q4 / Hoffman, Refuses on Shrikhande / rook 4x4: too many rings" in table.remarks


def test_a_broken_bound_is_loud(tmp_path, monkeypatch):
    """GPS reads return probabilities, so that 1-WL does not bound it; a claim that it does must be found out."""
    name = "triangular prism / K3,3"
    wrong = dataclasses.replace(MODELS["gps"], bound="1-WL")
    monkeypatch.setitem(MODELS, "gps", wrong)
    claimed = {"zinc-gps": system("GPS", "encoding.name=none", "encoding.walk_steps=1", recipe="zinc-gps")}
    monkeypatch.setattr(expressivity, "find_systems", lambda dataset: claimed)
    found = {"zinc-gps": {name: Separation(0.1, True, True)}}
    monkeypatch.setattr(expressivity, "compare_pairs", lambda system, pairs: found["zinc-gps"])
    bench = Workbench(tmp_path, "smoke")
    with pytest.raises(grit.GritError, match=r"what their bound cannot \(zinc-gps: triangular prism / K3,3\)"):
        expressivity.compare_systems(bench, {name: witness_pairs()[name]})
    (row,) = json.loads((tmp_path / "systems.json").read_text())["rows"]
    assert row["verdict"] == "BROKEN: triangular prism / K3,3"
    assert row[name] == "yes, 1e-01"
    assert row["bound"] == "1-WL"


def test_what_is_not_sure_breaks_no_bound(pairs):
    assert broken_bounds(gine(), {NAMES[0]: Separation(0.1, True, False)}, pairs) == []
    assert broken_bounds(gine(), {NAMES[0]: Separation(0.1, True, True)}, pairs) == [NAMES[0]]
