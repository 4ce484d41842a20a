import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

import grit
from grit.batches.pair_batch import PairBatch
from grit.batches.spec import BatchSpec
from grit.datasets import from_pyg
from grit.graphs.chunk import ArrayGraph, GraphChunk
from grit.graphs.schema import Features, GraphSchema, TaskSpec
from grit.graphs.store import GraphStore
from grit.graphs.store_format import MANIFEST, SkippedRow, npy_header, smallest_integer
from grit.graphs.store_writer import StoreWriter
from tests.graph_strategies import featured_graphs

SCHEMA = GraphSchema(node=Features(kind="category", sizes=(5,)), edge=Features(kind="category", sizes=(3,)))
TASK = TaskSpec(kind="regression", targets=("y",), loss="l1", metric="mae")


def graph(n, seed=0, large=False):
    rng = np.random.default_rng(seed)
    edges = rng.integers(0, n, (2, 2 * n))
    return ArrayGraph(
        x=rng.integers(0, 5, (n, 1)),
        edge_index=edges,
        edge_attr=rng.integers(0, 3, (2 * n, 1)),
        y=np.array([[float(seed)]]),
    )


def write(path, graphs, chunk_size=3, splits=None, **options):
    with StoreWriter(path, name="toy", graphs=SCHEMA, task=TASK, source="here", **options) as writer:
        for start in range(0, len(graphs), chunk_size):
            writer.append(GraphChunk.of(graphs[start : start + chunk_size]))
        writer.finish(splits if splits is not None else {"train": np.arange(len(graphs))})
    return GraphStore.open(path)


@pytest.fixture
def store(tmp_path):
    return write(tmp_path / "toy", [graph(n, seed=n) for n in (3, 1, 4, 2, 6)])


@given(data_list=st.lists(featured_graphs(), min_size=1, max_size=6), data=st.data())
def test_take_is_from_data_list(tmp_path_factory, data_list, data):
    for number, each in enumerate(data_list):
        each.y = torch.tensor([float(number)])
    splits = {"train": list(range(len(data_list)))}
    out = tmp_path_factory.mktemp("stores") / "s"
    on_disk = from_pyg(data_list, splits=splits, out=out)
    in_memory = from_pyg(data_list, splits=splits)
    order = data.draw(st.lists(st.integers(0, len(data_list) - 1), min_size=1, max_size=6))
    wanted = grit.PairBatch.from_data_list([data_list[number] for number in order], walk_steps=4)
    for each in (on_disk, in_memory, GraphStore.open(out)):
        got = PairBatch.from_store(each, order, BatchSpec(4))
        for name in ("x", "edge_index", "edge_attr", "node_ptr", "edge_ptr", "y"):
            assert torch.equal(getattr(got.graphs, name), getattr(wanted.graphs, name)), name
        assert torch.equal(got.pair_encoding, wanted.pair_encoding)
        assert torch.equal(got.pairs.edge_pair, wanted.pairs.edge_pair)


def test_contents(store):
    assert len(store) == 5
    assert store.nodes_per_graph().tolist() == [3, 1, 4, 2, 6]
    assert store.nodes_per_graph(np.array([4, 0])).tolist() == [6, 3]
    assert store.targets(np.array([2, 0])).tolist() == [[4.0], [3.0]]
    assert store.split("train").tolist() == [0, 1, 2, 3, 4]
    assert store.rows.tolist() == [0, 1, 2, 3, 4]
    assert repr(store) == "GraphStore('toy', 5 graphs (train 5))"
    assert store.array("edge_index").dtype == np.uint8
    assert store.manifest.arrays["x"].dtype == "uint8"
    store.verify()
    with pytest.raises(grit.GritError, match="no split 'test'; there are train"):
        store.split("test")


def test_files_are_plain_npy(store):
    for name in store.manifest.arrays:
        assert np.array_equal(np.load(store.path / f"{name}.npy"), store.array(name))


def test_the_smallest_type_that_fits_all_chunks(tmp_path):
    store = write(tmp_path / "s", [graph(3), graph(300, seed=1), graph(2)], chunk_size=1)
    assert store.array("edge_index").dtype == np.uint16
    assert np.array_equal(store.gather([1]).edge_index.numpy(), graph(300, seed=1).edge_index)
    assert np.array_equal(store.gather([2]).edge_index.numpy(), graph(2).edge_index)


@pytest.mark.parametrize(
    ("low", "high", "name"),
    [
        (0, 255, "uint8"),
        (-1, 127, "int8"),
        (0, 256, "uint16"),
        (-200, 3, "int16"),
        (0, 2**32 - 1, "uint32"),
        (-1, 2**40, "int64"),
    ],
)
def test_smallest_integer(low, high, name):
    assert smallest_integer(low, high) == name


def test_pickles_by_reopening(store):
    again = pickle.loads(pickle.dumps(store))
    assert torch.equal(again.gather([4, 1]).x, store.gather([4, 1]).x)
    in_memory = from_pyg([Data(edge_index=torch.zeros(2, 0).long(), num_nodes=2, y=torch.tensor([1.0]))] * 3)
    assert len(pickle.loads(pickle.dumps(in_memory))) == 3


@pytest.mark.parametrize("indices", [[], [5], [-1], [0.5], [[0]]])
def test_bad_numbers(store, indices):
    with pytest.raises(grit.GritError, match="gather needs a list of graph numbers|has graphs 0 to 4"):
        store.gather(indices)


def test_nothing_is_left_of_a_build_that_failed(tmp_path):
    with pytest.raises(RuntimeError, match="halfway"):
        with StoreWriter(tmp_path / "s", name="toy", graphs=SCHEMA, task=TASK, source="here") as writer:
            writer.append(GraphChunk.of([graph(3)]))
            raise RuntimeError("halfway")
    assert list(tmp_path.iterdir()) == []


def test_a_killed_build_leaves_no_store_and_the_next_one_cleans_up(tmp_path):
    program = f"""
import time
from tests.graphs.test_store import *
writer = StoreWriter(__import__("pathlib").Path({str(tmp_path / "s")!r}), name="toy", graphs=SCHEMA, task=TASK, source="here")
writer.append(GraphChunk.of([graph(3)]))
print("ready", flush=True)
time.sleep(60)
"""
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert not (tmp_path / "s").exists()
    assert len(list(tmp_path.iterdir())) == 1
    write(tmp_path / "s", [graph(3)])
    assert [path.name for path in tmp_path.iterdir()] == ["s"]


def test_existing_stores_are_kept_unless_asked(store):
    with pytest.raises(grit.GritError, match="exists already"):
        write(store.path, [graph(3)])
    assert len(write(store.path, [graph(3)], overwrite=True)) == 1
    assert [path.name for path in store.path.parent.iterdir()] == ["toy"]


def test_readers_keep_their_view_while_a_store_is_replaced(store):
    before = store.gather([0]).x.clone()
    write(store.path, [graph(9)], overwrite=True)
    assert torch.equal(store.gather([0]).x, before)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": np.full((3, 1), 7)}, r"x holds categories up to \[7\], the schema says one category of 5"),
        ({"x": np.full((3, 2), 1)}, "x has 2 columns, the schema says one category"),
        ({"edge_index": np.full((2, 6), 3)}, "graph 0: the edge 3 -> 3 leaves its 3 nodes"),
        ({"edge_attr": np.zeros((5, 1), int)}, "edge_attr has 5 rows, expected 6"),
        ({"y": np.zeros((2, 1))}, "y has 2 rows, expected 1"),
        ({"num_nodes": np.array([0, 3]), "num_edges": np.array([0, 6]), "y": np.zeros((2, 1))}, "graph 0 has no nodes"),
    ],
)
def test_unsound_graphs_are_refused(tmp_path, changes, message):
    chunk = replace(GraphChunk.of([graph(3)]), **changes)
    with pytest.raises(grit.GritError, match=message):
        with StoreWriter(tmp_path / "s", name="toy", graphs=SCHEMA, task=TASK, source="here") as writer:
            writer.append(chunk)


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        ({"train": np.array([7])}, r"split 'train' names graphs outside 0\.\.0"),
        ({"train": np.array([0, 0])}, "names a graph twice"),
        ({"../x": np.array([0])}, "not a simple word"),
    ],
)
def test_bad_splits(tmp_path, splits, message):
    with pytest.raises(grit.GritError, match=message):
        write(tmp_path / "s", [graph(3)], splits=splits)


def test_no_graphs(tmp_path):
    with pytest.raises(grit.GritError, match=r"toy: there is no graph to store\."):
        with StoreWriter(tmp_path / "s", name="toy", graphs=SCHEMA, task=TASK, source="here") as writer:
            writer.finish({}, skipped=[SkippedRow(3, "xx", "not valid")])


def test_floats_and_integers_do_not_mix(tmp_path):
    with pytest.raises(grit.GritError, match="y holds integers, earlier graphs hold floating-point"):
        write(tmp_path / "s", [graph(3), graph(2)._replace(y=np.array([[1]]))], chunk_size=1)


def test_skipped_rows_are_listed(tmp_path):
    skipped = [SkippedRow(1, 'odd "text", with\nnewline', "no reason")]
    with StoreWriter(tmp_path / "s", name="toy", graphs=SCHEMA, task=TASK, source="here") as writer:
        writer.append(GraphChunk.of([graph(3), graph(2)]), np.array([0, 2]))
        writer.finish({}, rows=3, skipped=skipped)
    store = GraphStore.open(tmp_path / "s")
    assert store.skipped == skipped
    assert (store.manifest.rows, store.manifest.skipped, store.rows.tolist()) == (3, 1, [0, 2])


def test_foreign_damaged_and_newer_stores(store, tmp_path):
    with pytest.raises(grit.GritError, match=f"not a graph store: it has no {MANIFEST}"):
        GraphStore.open(tmp_path)
    manifest = store.path / MANIFEST
    original = manifest.read_text()
    for change, message in (
        ({"version": 5}, "format version 5, this grit reads up to 4"),
        ({"format": "other"}, "damaged: manifest.json cannot be read: format"),
        ({"task": {"kind": "guess"}}, "damaged"),
        ({"name": "other"}, "manifest.json has changed since the store was built"),
        ({"arrays": {}, "version": 1}, "lacks edge_attr, edge_index"),
    ):
        manifest.write_text(json.dumps({**json.loads(original), **change}))
        with pytest.raises(grit.GritError, match=message):
            GraphStore.open(store.path)
    manifest.write_text(original)
    for name, message in (("x", "x.npy has"), ("edge_ptr", "edge_ptr.npy has")):
        copy = tmp_path / name
        shutil.copytree(store.path, copy)
        data = (copy / f"{name}.npy").read_bytes()
        (copy / f"{name}.npy").write_bytes(data[:-1])
        with pytest.raises(grit.GritError, match=f"damaged: {message}"):
            GraphStore.open(copy)
        (copy / f"{name}.npy").unlink()
        with pytest.raises(grit.GritError, match="cannot be opened"):
            GraphStore.open(copy)


@pytest.fixture(scope="module")
def intact(tmp_path_factory):
    return write(tmp_path_factory.mktemp("fuzz") / "toy", [graph(n, seed=n) for n in (3, 1, 4)])


@given(data=st.data())
def test_fuzz_only_our_own_error_comes_out(intact, tmp_path_factory, data):
    """Random bytes, or random changes, in any file of a store."""
    folder = tmp_path_factory.mktemp("damaged") / "s"
    shutil.copytree(intact.path, folder)
    path = data.draw(st.sampled_from(sorted(folder.iterdir())))
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        content = bytearray(data.draw(st.binary(max_size=200)))
    else:
        for _ in range(data.draw(st.integers(1, 8))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(bytes(content))
    try:
        store = GraphStore.open(folder)
        PairBatch.from_store(store, range(len(store)), BatchSpec(3))
        _ = store.skipped
        store.verify()
    except grit.GritError:
        pass
    shutil.rmtree(folder)


def test_header_is_valid_for_numpy():
    header = npy_header(np.dtype("int64"), (3, 2))
    assert len(header) == 128
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(__import__("io").BytesIO(header[8:]))
    assert (shape, fortran, dtype) == ((3, 2), False, np.dtype("int64"))


def test_opening_maps_the_files(tmp_path):
    store = write(tmp_path / "s", [graph(5, seed=n) for n in range(50)], chunk_size=50)
    again = GraphStore.open(store.path)
    assert all(not values.flags.owndata for values in map(again.array, again.manifest.arrays) if values.size)
    assert os.path.getsize(store.path / "x.npy") == 128 + 250


def test_edge_level_round_trip(tmp_path):
    data = Data(
        x=torch.tensor([[0.5], [1.0], [2.0]]),
        edge_index=torch.tensor([[0, 1], [1, 2]]),
        edge_label_index=torch.tensor([[0, 2], [2, 1]]),
        edge_label=torch.tensor([1.0, 0.0]),
    )
    store = from_pyg([data] * 4, out=tmp_path / "s")
    assert (store.schema.level, store.task.kind) == ("edge", "binary")
    batch = PairBatch.from_store(store, [3, 1], BatchSpec(3))
    wanted = grit.PairBatch.from_data_list([data, data], walk_steps=3)
    assert torch.equal(batch.graphs.label_index, wanted.graphs.label_index)
    assert torch.equal(batch.y, wanted.y)
    assert store.targets(np.array([0])).tolist() == [[1.0], [0.0]]
