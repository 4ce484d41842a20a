import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

import grit
from grit.batches.pair_batch import PairBatch
from grit.batches.spec import BatchSpec
from grit.encodings import ENCODINGS
from grit.graphs.convert import pack
from grit.nn.attention import ATTENTIONS
from grit.studies import STUDIES, Workbench
from grit.studies.khop import experiment as khop
from grit.studies.khop.attention_figure import draw_maps
from grit.studies.khop.methods import METHODS
from grit.studies.khop.problems import ProblemwiseAdam, khop_target, mean_absolute_error, r_squared, train
from grit.studies.khop.tables import PAPER_MAE, ScoreRow, best_rate, optimisation_remark, score_table, unmatched_remark
from tests.graph_strategies import graphs

# A ring of five with a tail of two.
RING = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (4, 5), (5, 6)]
METHOD = pytest.mark.parametrize("name", sorted(METHODS))


def molecule(edges=RING):
    both = torch.tensor([*edges, *((v, u) for u, v in edges)]).t()
    return pack([Data(edge_index=both, num_nodes=int(both.max()) + 1)])


def batch_for(name, dtype=torch.float64):
    return PairBatch.from_graphs(molecule(), BatchSpec(METHODS[name].size, METHODS[name].encoding, dtype=dtype))


def targets(kind="no-diagonal"):
    return torch.stack([khop_target(molecule(), k, kind) for k in (1, 2, 3)])


@METHOD
def test_the_dense_form_is_the_module_of_the_table(name):
    torch.manual_seed(0)
    probe, batch = METHODS[name].probe().double(), batch_for(name)
    assert type(probe.attention) in ATTENTIONS.values()
    assert METHODS[name].encoding in ENCODINGS
    with torch.no_grad():
        for parameter in probe.parameters():  # away from the start, where weights may be nearly equal
            parameter.add_(0.3 * torch.randn_like(parameter))
        dense, packed = probe(batch.node_encoding, batch.pair_encoding), probe.packed(batch)
    assert dense.std() > 1e-3
    torch.testing.assert_close(dense.flatten(), packed, rtol=1e-9, atol=1e-12)


@METHOD
def test_problems_trained_together_are_those_trained_alone_by_torchs_adam(name):
    batch, wanted, lr, steps = batch_for(name), targets().double(), torch.tensor([1e-2, 1e-3]), 6
    together = train(lambda: METHODS[name].probe().double(), batch, wanted, lr.double(), steps)
    for place, rate in enumerate(lr.tolist()):
        torch.manual_seed(0)
        for k, probe in enumerate([METHODS[name].probe().double() for _ in wanted]):
            adam = torch.optim.Adam(probe.parameters(), lr=rate)
            for _ in range(steps):
                adam.zero_grad()
                weights = probe(batch.node_encoding, batch.pair_encoding)
                mean_absolute_error(weights, wanted[k]).backward()
                adam.step()
            alone = probe(batch.node_encoding, batch.pair_encoding)
            torch.testing.assert_close(together[place, k], alone, rtol=1e-6, atol=1e-8)


@METHOD
def test_training_changes_something_and_repeats(name):
    batch, wanted, lr = batch_for(name, torch.float32), targets(), torch.tensor([1e-2])
    start, end, again = (train(METHODS[name].probe, batch, wanted, lr, steps) for steps in (0, 40, 40))
    assert torch.equal(end, again)
    assert mean_absolute_error(end, wanted).mean() < mean_absolute_error(start, wanted).mean()


def test_grit_learns_what_distances_cannot_say():
    lr, wanted = torch.tensor([1e-2]), targets()
    error = {
        name: mean_absolute_error(train(METHODS[name].probe, batch_for(name, torch.float32), wanted, lr, 400), wanted)[
            0
        ]
        for name in ("grit", "graphormer")
    }
    assert error["grit"].max() < 0.003
    assert error["graphormer"][0] < 0.01
    assert error["graphormer"][2] > 0.01  # nodes 1 and 4 are at distance 2, and 3 steps apart around the ring


def test_each_problem_has_its_own_rate():
    parameter = torch.zeros(3, 2, 2)
    adam = ProblemwiseAdam([parameter], torch.tensor([0.1, 0.0, 0.01]))
    adam.step((torch.ones(3, 2, 2),))
    torch.testing.assert_close(parameter[:, 0, 0], torch.tensor([-0.1, 0.0, -0.01]))


def test_targets_by_hand():
    """0 - 1 - 2: two steps lead from an end to both ends, from the middle back to itself."""
    path = molecule([(0, 1), (1, 2)])
    half = [0.5, 0.0, 0.5]
    assert khop_target(path, 1).tolist() == [[0, 1, 0], half, [0, 1, 0]]
    assert khop_target(path, 2, "literal").tolist() == [half, [0, 1, 0], half]
    assert khop_target(path, 2).tolist() == [[0, 0, 1], [0, 1, 0], [1, 0, 0]]  # the middle leads nowhere else: itself
    assert khop_target(path, 3).tolist() == khop_target(path, 1).tolist()


@given(graphs(), st.integers(1, 3), st.sampled_from(["literal", "no-diagonal"]))
def test_target_rows_sum_to_one_over_what_k_steps_reach(data, hops, kind):
    target = khop_target(pack([data]), hops, kind)
    torch.testing.assert_close(target.sum(1), torch.ones(data.num_nodes))
    reached = grit.rrwp(data.edge_index, data.num_nodes, hops + 1, dtype=torch.float64)[:, :, hops] > 0
    if kind == "no-diagonal":
        reached.fill_diagonal_(False)
    some = reached.any(1)
    assert torch.equal(target[some] > 0, reached[some])
    assert torch.equal(target[~some], torch.eye(data.num_nodes)[~some])


def test_scores():
    target = targets()
    equal = torch.full_like(target, 1 / 7)
    torch.testing.assert_close(r_squared(equal, target), torch.zeros(3), rtol=0, atol=1e-6)
    assert r_squared(target, target).tolist() == [1.0, 1.0, 1.0]
    assert mean_absolute_error(target, target).tolist() == [0.0, 0.0, 0.0]
    torch.testing.assert_close(mean_absolute_error(target + 0.25, target), torch.full((3,), 0.25))
    np.testing.assert_allclose(
        r_squared(target**2, target)[1],
        1 - ((target[1] ** 2 - target[1]) ** 2).sum() / ((target[1] - target[1].mean()) ** 2).sum(),
        rtol=1e-5,
    )


def test_the_best_rate_has_the_lowest_mean_and_is_a_number():
    mae = torch.tensor([[[0.3] * 3, [0.1] * 3, [0.2] * 3, [torch.nan] * 3]] * 2)
    assert best_rate(mae) == 1


def test_the_gap_is_called_optimisation_only_where_it_is():
    grit_mae = torch.full((2, 2, 3), 0.001)
    closing = torch.tensor([[[0.041] * 3, [0.003] * 3]] * 2)
    text = optimisation_remark({"graphormer": closing, "grit": grit_mae}, 0, [5e-4, 1e-2])
    assert text.startswith("Most of the published gap to Graphormer is an optimisation effect")
    assert "0.0400 / 0.0400 / 0.0400" in text
    assert "95 / 95 / 95 % of it is gone" in text
    staying = torch.tensor([[[0.041] * 3, [0.031] * 3]] * 2)
    assert "too small to show" in optimisation_remark({"graphormer": staying, "grit": grit_mae}, 0, [5e-4, 1e-2])


def test_tables_show_mean_deviation_and_difference():
    rows = [ScoreRow("grit", 1e-3, torch.tensor([[0.002, 0.001, 0.007], [0.004, 0.001, 0.007]]))]
    table = score_table("t", rows, PAPER_MAE, [])
    (row,) = table.tree()["rows"]
    assert row["1-hop"] == "0.0030 ± 0.0014"
    assert row["1-hop, paper"] == "0.001 ± 0.001"
    assert row["1-hop, difference"] == pytest.approx(0.002)
    assert "for some k: GRIT." in unmatched_remark(rows, PAPER_MAE)
    equal = [ScoreRow("grit", 1e-3, torch.tensor([[0.001, 0.001, 0.007]] * 2))]
    assert unmatched_remark(equal, PAPER_MAE).startswith("Every row is within")


def test_the_figure_has_a_panel_for_every_k_and_column():
    figure = draw_maps("one molecule", {"target": targets().numpy(), "EGT+SVDPE": np.full((3, 7, 7), 1 / 7)})
    panels = [axis for axis in figure.axes if axis.images]
    assert len(panels) == 6
    assert [axis.get_title() for axis in panels[:2]] == ["target", "EGT\n+ SVDPE"]
    assert {tuple(axis.images[0].get_clim()) for axis in panels} == {(0.0, 1.0)}
    assert any(axis.get_ylabel() == "attention weight" for axis in figure.axes)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The study at its smallest, without ZINC."""
    folder = tmp_path_factory.mktemp("khop")
    grit.datasets.build("zinc-mini", root=folder / "data", options=grit.datasets.BuildOptions(1, limit=8))
    bench = Workbench(folder / "run", "smoke", root=folder / "data")
    STUDIES["khop"].run(bench)
    return bench


def test_everything_is_made(finished):
    names = {path.name for path in finished.made}
    for table in ("mae-fixed", "mae-best", "r2-fixed", "r2-best", "learning-rates"):
        assert {f"{table}.md", f"{table}.json"} <= names
    for figure in ("maps-fixed", "maps-best"):
        assert (finished.folder / f"{figure}.png").read_bytes().startswith(b"\x89PNG")
    table = json.loads((finished.folder / "mae-fixed.json").read_text())
    assert [row["method"] for row in table["rows"]] == [
        "MeanPool",
        *("Transformer+RWSE", "SAN+LapPE", "EGT+SVDPE", "Graphormer+SPDPE", "GRIT"),
    ]
    assert any("bundled zinc-mini" in remark for remark in table["remarks"])
    pooled = json.loads((finished.folder / "r2-fixed.json").read_text())["rows"][0]
    assert abs(pooled["1-hop, difference"]) < 1e-4


def test_a_second_run_trains_nothing_and_says_the_same(finished, monkeypatch):
    before = {path: path.read_bytes() for path in finished.folder.glob("*.json")}
    monkeypatch.setattr(khop, "train", None)
    monkeypatch.setattr(Workbench, "figure", lambda bench, name, figure: None)  # the slow part
    STUDIES["khop"].run(Workbench(finished.folder, "smoke", root=finished.root))
    assert before == {path: path.read_bytes() for path in finished.folder.glob("*.json")}


def test_the_literal_target_is_an_option_and_others_are_refused(finished, tmp_path, monkeypatch):
    monkeypatch.setattr(Workbench, "figure", lambda bench, name, figure: None)
    bench = Workbench(tmp_path / "literal", "smoke", root=finished.root, options={"target": "literal"})
    STUDIES["khop"].run(bench)
    here, there = (
        json.loads((folder / "mae-fixed.json").read_text())["rows"][0] for folder in (finished.folder, bench.folder)
    )
    assert here["1-hop"] == there["1-hop"]
    assert here["2-hop"] != there["2-hop"]
    with pytest.raises(grit.GritError, match="target must be one of no-diagonal, literal, got 'odd'"):
        STUDIES["khop"].run(Workbench(tmp_path / "odd", "smoke", root=finished.root, options={"target": "odd"}))
