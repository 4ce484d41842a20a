import json
from contextlib import nullcontext

import pytest

import grit
from grit import kernels
from grit.studies import STUDIES, Workbench
from grit.studies.runtime import runtime_table as runtime
from grit.studies.runtime.peak_memory import MemoryRequest, resident_growth
from grit.studies.runtime.timed_models import CONTESTANTS, Runner, batches
from grit.studies.stand_ins import stand_in_store


@pytest.fixture(scope="module")
def store():
    return stand_in_store("zinc", (12, 1, 1))


def test_smoke(tmp_path, monkeypatch):
    asked = []

    def growth(request):
        asked.append(request)
        return {"san": 300.0, "gps": 50.0, "grit": 100.0, "grit-plain": None}[request.contestant]

    monkeypatch.setattr(runtime, "resident_growth", growth)
    bench = Workbench(tmp_path / "study", "smoke", root=tmp_path / "data")
    STUDIES["runtime"].run(bench)
    table = json.loads((bench.folder / "runtime.json").read_text())
    rows = {row["model"]: row for row in table["rows"]}
    assert list(rows) == ["SAN", "GPS", "GRIT", "GRIT, plain kernels"]
    assert [row["memory / GRIT's"] for row in rows.values()] == ["3.00", "0.50", "1.00", None]
    assert rows["GRIT"]["time / GRIT's"] == "1.00"
    assert [rows[name]["parameters"] for name in ("SAN", "GPS", "GRIT")] == [454_753, 423_717, 473_473]
    assert rows["SAN"]["paper: epoch, / GRIT's"] == "57.9 s, 1.97"
    assert rows["GPS"]["paper: memory, / GRIT's"] == "1101 MB, 0.59"
    batches = 1250
    rounding = 0.05 + 0.05 / 1e3 * batches  # both figures are rounded to one decimal, each on its own
    for row in rows.values():
        assert row["s per epoch"] == pytest.approx(row["ms per step"] / 1e3 * batches, abs=rounding + 1e-9)
        assert row["encoding of ZINC, s"] > 0
    remarks = " ".join(table["remarks"])
    for text in ("1 thread(s)", "real and fake edges", "zinc-mini", kernels.status().active):
        assert text in remarks
    assert [request.contestant for request in asked] == list(CONTESTANTS)
    assert all(request.store is None and request.threads == 1 for request in asked)
    STUDIES["runtime"].run(Workbench(tmp_path / "study", "smoke", root=tmp_path / "data"))
    assert len(asked) == len(CONTESTANTS)  # a second time everything is there


def test_memory_of_a_fresh_process():
    request = MemoryRequest("grit", None, graphs=8, batch_size=8, steps=1, threads=1)
    growth = resident_growth(request)
    assert growth is None or 5 < growth < 2_000


def test_a_probe_that_fails_is_an_error():
    with pytest.raises(grit.GritError, match="memory of nobody failed: KeyError"):
        resident_growth(MemoryRequest("nobody", None, 1, 1, 1, 1))


@pytest.mark.parametrize("name", sorted(CONTESTANTS))
def test_a_step_trains(name, store):
    runner = Runner(CONTESTANTS[name], store)
    before = {key: value.clone() for key, value in runner.network.named_parameters()}
    runner.optimizer.param_groups[0]["lr"] = 1e-3
    assert runner.step([0, 1, 2]) > 0
    assert runner.encode([0, 1, 2]) > 0
    assert any(not before[key].equal(value) for key, value in runner.network.named_parameters())


def test_kernels_are_the_users_choice_except_for_the_plain_row(store, monkeypatch):
    used = []
    monkeypatch.setattr(
        "grit.studies.runtime.timed_models.kernels.use", lambda form: used.append(form) or nullcontext()
    )
    monkeypatch.setenv("GRIT_KERNELS", "plain")
    for name in ("grit", "grit-plain"):
        Runner(CONTESTANTS[name], store).encode([0])
    monkeypatch.setenv("GRIT_KERNELS", "auto")
    for name in ("grit", "grit-plain"):
        Runner(CONTESTANTS[name], store).encode([0])
    assert used == ["plain", "plain", "auto", "plain"]


def test_batches_begin_again(store):
    assert batches(store, 2, 8) == [list(range(8)), [8, 9, 10, 11, 0, 1, 2, 3]]


def test_has_no_device(tmp_path):
    with pytest.raises(grit.GritError, match="no option 'device'; it has only"):
        STUDIES["runtime"].run(Workbench(tmp_path, options={"device": "cpu"}))
