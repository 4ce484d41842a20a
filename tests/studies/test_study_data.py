import numpy as np
import pytest

import grit
from grit.datasets import DATASETS, build
from grit.datasets.benchmarks.benchmark import BuildOptions
from grit.studies import Workbench
from grit.studies.stand_ins import STAND_INS, stand_in_store
from grit.studies.study_data import fingerprint, open_data


def workbench(tmp_path, budget="smoke"):
    return Workbench(tmp_path / "study", budget, root=tmp_path / "data")


@pytest.mark.parametrize("name", sorted(STAND_INS))
def test_stand_ins_have_the_schema_of_the_data_set(name):
    store = stand_in_store(name, (4, 3, 2))
    assert {split: members.size for split, members in store.splits.items()} == {"train": 4, "val": 3, "test": 2}
    assert store.schema == DATASETS[name].schema
    assert store.task == DATASETS[name].task
    assert np.isfinite(store.targets(np.arange(9)).astype(float)).all()
    assert len({store.gather([k]).x.numpy().tobytes() for k in range(9)}) == 9
    assert fingerprint(store) == fingerprint(stand_in_store(name, (4, 3, 2)))
    assert fingerprint(store) != fingerprint(stand_in_store(name, (3, 4, 2)))


def test_a_stand_in_says_so(tmp_path):
    data = open_data(workbench(tmp_path), "mnist", (4, 2, 2))
    assert not data.is_benchmark
    assert data.note == (
        "mnist has not been built; in its place: random pictures and labels, which only prove that the path runs"
    )
    assert data.sizes == "4 / 2 / 2"


def test_bundled_molecules_are_not_more_than_there_are():
    assert {split: members.size for split, members in stand_in_store("zinc", (3, 400, 2)).splits.items()} == {
        "train": 3,
        "val": 250,
        "test": 2,
    }


@pytest.mark.parametrize(
    ("name", "budget", "sizes"),
    [
        ("mnist", "small", (4, 2, 2)),
        ("zinc", "paper", None),
        ("pattern", "paper", None),
        ("pcqm4mv2", "small", (4, 2, 2)),
    ],
)
def test_data_that_is_missing(tmp_path, name, budget, sizes):
    with pytest.raises(grit.GritError, match=f"grit datasets build {name}"):
        open_data(workbench(tmp_path, budget), name, sizes)


def test_built_data_is_preferred_and_a_part_of_it_is_not_the_benchmark(tmp_path):
    build("pattern", root=tmp_path / "data", how="generate", options=BuildOptions(processes=1, limit=5))
    some = open_data(workbench(tmp_path), "pattern", (3, 2, 1))
    assert some.store.name == "pattern"
    assert some.sizes == "3 / 2 / 1"
    assert not some.is_benchmark
    assert "pattern was built with 15 of 14,000 graphs; pattern: drawn from the published distribution" in some.note
    whole = Workbench(tmp_path / "other", "paper", root=tmp_path / "data")
    assert not open_data(whole, "pattern", None).is_benchmark


def test_the_whole_data_set_is_the_benchmark(tmp_path, monkeypatch):
    build("pattern", root=tmp_path / "data", how="generate", options=BuildOptions(processes=1, limit=5))
    store = grit.datasets.load("pattern", tmp_path / "data")
    manifest = store.manifest.model_copy(update={"built": {"source": "official", "limit": "none", "note": ""}})
    monkeypatch.setattr(store, "manifest", manifest)
    monkeypatch.setattr("grit.studies.study_data.load", lambda name, root: store)
    data = open_data(workbench(tmp_path, "paper"), "pattern", None)
    assert data.is_benchmark
    assert data.note == ""
    assert data.store is store
    small = Workbench(tmp_path / "small", "small", root=tmp_path / "data")
    assert not open_data(small, "pattern", None).is_benchmark


def test_a_study_goes_on_with_the_graphs_that_it_began_with(tmp_path):
    open_data(workbench(tmp_path), "pattern", (3, 2, 1))
    open_data(workbench(tmp_path), "pattern", (3, 2, 1))
    build("pattern", root=tmp_path / "data", how="generate", options=BuildOptions(processes=1, limit=5, seed=7))
    with pytest.raises(grit.GritError, match="begun with other graphs of pattern"):
        open_data(workbench(tmp_path), "pattern", (3, 2, 1))
