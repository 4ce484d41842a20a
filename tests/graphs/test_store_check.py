"""A store is what was built, or it is refused: at once, or by ``verify``."""

import hashlib
import json
import os
import pickle
import shutil
import sys
from collections import Counter

import numpy as np
import pytest

import grit
from grit.graphs import store_check
from grit.graphs.schema import GraphSchema
from grit.graphs.store import GraphStore
from grit.graphs.store_format import MANIFEST, Manifest, manifest_text, npy_header
from tests.graphs.damaged_stores import KINDS, content, damage, one_number, sample_store

CASES = 488
QUICK = 5 * len(KINDS)


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stores")
    return {level: sample_store(folder / level, level) for level in ("graph", "described", "node", "edge")}


def copy(store, folder):
    shutil.copytree(store.path, folder / "copy", dirs_exist_ok=True)
    return folder / "copy"


def refusal(action):
    """The error of an action in one line; None if there was none."""
    try:
        action()
    except grit.GritError as error:
        assert "\n" not in str(error)
        return str(error)
    return None


def check_damage_is_noticed(store, folder, seed):
    """What was written over is refused on opening."""
    damaged = copy(store, folder)
    what = damage(damaged, seed, quiet=False)
    opened = []
    message = refusal(lambda: opened.append(GraphStore.open(damaged)))
    assert (message is None) == bool(opened)
    assert message is not None or content(opened[0]) == content(store), what


def check_verify_finds_it(store, folder, seed):
    """What a disk changed without a trace is refused on opening, or found by verify; how: opening, verify or unharmed."""
    damaged = copy(store, folder)
    GraphStore.open(damaged)
    what = damage(damaged, seed, quiet=True)
    opened = []
    if refusal(lambda: opened.append(GraphStore.open(damaged))):
        return "opening"
    message = refusal(opened[0].verify)
    assert message is not None or content(GraphStore.open(damaged)) == content(store), what
    return "verify" if message else "unharmed"


@pytest.mark.parametrize("level", ["graph", "described", "node", "edge"])
class TestDamage:
    def test_is_refused_on_opening(self, stores, level, tmp_path):
        for seed in range(QUICK):
            check_damage_is_noticed(stores[level], tmp_path / str(seed), seed)

    def test_without_a_trace_is_found_by_verify(self, stores, level, tmp_path, monkeypatch):
        """As in a large store, whose arrays are not read on opening."""
        monkeypatch.setattr(store_check, "SMALL", 0)
        found = [check_verify_finds_it(stores[level], tmp_path / str(seed), seed) for seed in range(QUICK)]
        assert found.count("verify") > QUICK // 6
        assert found.count("opening") > QUICK // 3

    def test_without_a_trace_in_a_small_array_is_refused_on_opening(self, stores, level, tmp_path):
        for seed in range(1, QUICK, len(KINDS)):
            assert KINDS[seed % len(KINDS)] is one_number
            assert check_verify_finds_it(stores[level], tmp_path / str(seed), seed) == "opening"

    @pytest.mark.slow
    def test_of_many_kinds(self, stores, level, tmp_path, monkeypatch):
        for seed in range(CASES // 2):
            check_damage_is_noticed(stores[level], tmp_path / f"loud {seed}", seed)
        monkeypatch.setattr(store_check, "SMALL", 0)
        for seed in range(CASES // 2):
            check_verify_finds_it(stores[level], tmp_path / f"quiet {seed}", seed)


def test_a_copy_is_verified_once(stores, tmp_path, capsys):
    store = stores["graph"]
    assert content(GraphStore.open(store.path)) == content(store)
    assert capsys.readouterr().err == ""
    moved = copy(store, tmp_path)
    GraphStore.open(moved)
    assert capsys.readouterr().err.startswith(f"grit: verifying the store {str(moved)!r}")
    GraphStore.open(moved)
    os.rename(moved, tmp_path / "moved")
    GraphStore.open(tmp_path / "moved")
    assert capsys.readouterr().err == ""
    os.utime(tmp_path / "moved" / "x.npy")
    GraphStore.open(tmp_path / "moved")
    assert "verifying" in capsys.readouterr().err


def test_a_copy_that_cannot_be_written_is_verified_every_time(stores, tmp_path, capsys, monkeypatch):
    moved = copy(stores["graph"], tmp_path)

    def read_only(path):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(store_check, "whole_file", read_only)
    for _ in range(2):
        assert content(GraphStore.open(moved)) == content(stores["graph"])
        shown = capsys.readouterr().err.splitlines()
        assert len(shown) == 2
        assert "every opening does this again" in shown[1]
    opened = GraphStore.open(moved)
    opened.verify()
    capsys.readouterr()
    assert content(pickle.loads(pickle.dumps(opened))) == content(opened)
    assert capsys.readouterr().err == ""  # a worker process trusts the one that verified


def test_a_worker_never_gets_another_store(tmp_path):
    store = sample_store(tmp_path / "s", "graph")
    pickled = pickle.dumps(store)
    shutil.rmtree(store.path)
    sample_store(tmp_path / "s", "graph", count=20)
    with pytest.raises(grit.GritError, match="was replaced while it was in use"):
        pickle.loads(pickled)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_processes_that_open_a_copy_together(stores, tmp_path):
    moved = copy(stores["graph"], tmp_path)
    children = []
    for _ in range(4):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                code = int(content(GraphStore.open(moved)) != content(stores["graph"]))
            finally:
                os._exit(code)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
    assert sorted(path.name for path in moved.iterdir()) == sorted(path.name for path in stores["graph"].path.iterdir())


def test_stores_of_the_first_version_open(stores, tmp_path, capsys):
    old = copy(stores["graph"], tmp_path)
    manifest = json.loads((old / MANIFEST).read_text())
    del manifest["sha256"], manifest["skipped_sha256"]
    (old / MANIFEST).write_text(json.dumps({**manifest, "version": 1}))
    (old / store_check.VERIFIED).unlink()
    store = GraphStore.open(old)
    assert content(store)[1:] == content(stores["graph"])[1:]
    store.verify()
    capsys.readouterr()
    GraphStore.open(old)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("shape", [[], [10**300, 10**300], [-1, -1], [1] * 100, [2**62, 2**62], [10**5000]])
def test_impossible_shapes_in_a_store_of_the_first_version(stores, tmp_path, shape):
    """Its manifest has no checksum."""
    old = copy(stores["graph"], tmp_path)
    manifest = json.loads((old / MANIFEST).read_text())
    del manifest["sha256"], manifest["skipped_sha256"]
    for name in ("x", "label_index"):
        manifest["arrays"][name] = {**manifest["arrays"]["x"], "shape": shape}
        if len(shape) != 1 or shape[0] < 10**300:
            (old / f"{name}.npy").write_bytes(
                npy_header(np.dtype(manifest["arrays"]["x"]["dtype"]), tuple(shape)) + b"0"
            )
    sys.set_int_max_str_digits(0)
    try:
        (old / MANIFEST).write_text(json.dumps({**manifest, "version": 1}))
    finally:
        sys.set_int_max_str_digits(4300)
    with pytest.raises(grit.GritError, match="is damaged"):
        GraphStore.open(old)


def forge(folder, **arrays):
    """Change arrays, and everything that could tell."""
    manifest = Manifest.model_validate_json((folder / MANIFEST).read_text())
    infos = dict(manifest.arrays)
    for name, values in arrays.items():
        (folder / f"{name}.npy").write_bytes(npy_header(values.dtype, values.shape) + values.tobytes())
        sha256 = hashlib.sha256(values.tobytes()).hexdigest()
        infos[name] = infos["x"].model_copy(
            update={"dtype": values.dtype.name, "shape": values.shape, "sha256": sha256}
        )
    (folder / MANIFEST).write_text(manifest_text(manifest.model_copy(update={"arrays": infos})))


def changed(store, name, place, value):
    values = np.array(store.array(name))
    values[place] = value
    return {name: values}


@pytest.mark.parametrize(
    ("level", "name", "place", "value", "message"),
    [
        ("graph", "x", (3, 0), 5, r"x holds categories up to \[5\], the schema says one category of 5"),
        ("graph", "edge_attr", (0, 1), 9, "edge_attr holds categories up to"),
        ("graph", "edge_index", (0, 0), 200, r"graph 0: the edge 200 -> \d+ leaves its \d nodes"),
        ("graph", "y", (7, 1), np.inf, "a target is infinite"),
        ("edge", "y", (0, 0), 2, "a target is 2, expected a class: 0 to 1"),
        ("edge", "label_index", (0, 1), 99, r"graph 0: the labelled pair \d+ -> 99 leaves its \d nodes"),
        ("graph", "split_val", 0, 3, "graph 3 is in the splits 'train' and 'val'"),
        ("graph", "split_val", 0, 26, "split 'val' names a graph twice"),
        ("node", "node_split", 0, 4, r"node_split holds numbers outside 0\.\.3"),
        ("node", "node_split", slice(None), 1, "the splits do not name the graphs whose nodes are in them"),
        ("node", "split_val", 0, 3, "the splits do not name the graphs whose nodes are in them"),
    ],
)
def test_verify_looks_at_what_the_numbers_mean(stores, tmp_path, level, name, place, value, message):
    folder = copy(stores[level], tmp_path)
    forge(folder, **changed(stores[level], name, place, value))
    with pytest.raises(grit.GritError, match=f"is damaged: {message}"):
        GraphStore.open(folder).verify()


def test_opening_looks_at_what_is_cheap(stores, tmp_path):
    store = stores["graph"]
    pointers, splits = np.array(store.array("node_ptr")), np.array(store.array("split_val"))
    falling, shifted, outside = pointers.copy(), pointers.copy(), splits.copy()
    falling[[3, 4]] = falling[[4, 3]]
    shifted[0] = 1
    outside[2] = 30
    for arrays, message in (
        ({"node_ptr": falling}, "node_ptr does not rise from 0 to"),
        ({"node_ptr": shifted}, "node_ptr does not rise from 0 to"),
        ({"node_ptr": pointers[:-1]}, "do not fit together"),
        ({"edge_ptr": np.array(store.array("edge_ptr"), dtype=np.float32)}, "do not fit together"),
        ({"x": np.array(store.array("x"), dtype=np.float32)}, "do not fit together"),
        ({"split_val": outside}, r"split_val names graphs outside 0\.\.29"),
        ({"node_split": np.ones(int(pointers[-1]), dtype=np.uint8)}, "do not fit together"),
    ):
        folder = copy(store, tmp_path / str(len(os.listdir(tmp_path))))
        forge(folder, **arrays)
        with pytest.raises(grit.GritError, match=message):
            GraphStore.open(folder, verify=False)


def test_a_manifest_of_another_schema_is_refused(stores, tmp_path):
    """Also one whose checksum is right."""
    folder = copy(stores["graph"], tmp_path)
    manifest = Manifest.model_validate_json((folder / MANIFEST).read_text())
    other = GraphSchema(node=manifest.graphs.node, edge=manifest.graphs.edge, level="node", num_outputs=2)
    (folder / MANIFEST).write_text(manifest_text(manifest.model_copy(update={"graphs": other})))
    with pytest.raises(grit.GritError, match="do not fit together"):
        GraphStore.open(folder)


def test_verify_reports_how_far_it_is(stores):
    done, totals = Counter(), {}

    def progress(what, step, total):
        done[what] += step
        totals[what] = total

    stores["graph"].verify(progress)
    assert dict(done) == totals
    assert totals["graphs"] == 30
    assert totals["checksums"] > stores["graph"].num_bytes


def test_a_store_is_verified_in_pieces(stores, tmp_path, monkeypatch):
    monkeypatch.setattr(store_check, "GRAPHS_AT_ONCE", 2)
    for level, store in stores.items():
        assert len(store) > 4
        assert refusal(GraphStore.open(copy(store, tmp_path / level)).verify) is None, level
