"""Stores whose nodes are divided: what may be stored, what is found damaged, and who may open them."""

import json
from dataclasses import replace

import numpy as np
import pytest

from grit.datasets import from_pyg
from grit.errors import GritError
from grit.graphs.chunk import GraphChunk
from grit.graphs.schema import Features, GraphSchema, TaskSpec
from grit.graphs.store import GraphStore
from grit.graphs.store_writer import StoreWriter
from tests.training.small import divided_graph, small_store

SCHEMA = GraphSchema(node=Features(kind="none"), edge=Features(kind="none"), level="node")
TASK = TaskSpec(kind="regression", targets=("y",), loss="l1", metric="mae")
WHOLE = {"train": np.array([0]), "val": np.array([0]), "test": np.array([0])}


def path_of_three(node_split):
    return GraphChunk(
        num_nodes=np.array([3]),
        num_edges=np.array([2]),
        x=np.zeros((3, 0), np.float32),
        edge_index=np.array([[0, 1], [1, 2]]),
        edge_attr=np.zeros((2, 0), np.float32),
        y=np.ones((3, 1), np.float32),
        node_split=node_split,
    )


def write(path, chunks, splits):
    with StoreWriter(path, name="toy", graphs=SCHEMA, task=TASK, source="here") as writer:
        for chunk in chunks:
            writer.append(chunk)
        writer.finish(splits)


@pytest.mark.parametrize("place", ["memory", "disk"])
@pytest.mark.parametrize(
    ("node_split", "splits", "message"),
    [
        (np.array([1, 2]), WHOLE, "one whole number for each of 3 nodes"),
        (np.array([1, 2, 4]), WHOLE, r"outside 0\.\.3"),
        (np.array([1, 2, 0]), WHOLE, "do not name the graphs whose nodes are in them"),
        (np.array([1, 2, 3]), {"train": np.array([0])}, "do not name the graphs whose nodes are in them"),
    ],
)
def test_what_does_not_fit_is_not_stored(tmp_path, place, node_split, splits, message):
    chunk = path_of_three(node_split)
    with pytest.raises(GritError, match=message):
        if place == "memory":
            GraphStore.in_memory(chunk, name="toy", graphs=SCHEMA, task=TASK, splits=splits)
        else:
            write(tmp_path / "store", [chunk], splits)


def test_all_graphs_are_divided_or_none(tmp_path):
    divided, whole = path_of_three(np.array([1, 2, 3])), path_of_three(None)
    for chunks in ([divided, whole], [whole, divided]):
        with pytest.raises(GritError, match="either all graphs"):
            write(tmp_path / "store", chunks, WHOLE)


def test_older_versions_of_grit_do_not_open_it(tmp_path):
    """They would train on the targets of all nodes."""
    from_pyg(divided_graph(), out=tmp_path / "divided")
    small_store(out=tmp_path / "whole")
    version = {
        name: json.loads((tmp_path / name / "manifest.json").read_text())["version"] for name in ("divided", "whole")
    }
    assert version == {"divided": 3, "whole": 2}


def test_a_changed_division_is_found(tmp_path):
    from_pyg(divided_graph(), out=tmp_path / "store")
    file = tmp_path / "store" / "node_split.npy"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(GritError, match=r"node_split.npy has changed"):
        GraphStore.open(tmp_path / "store")


def test_divided_otherwise_the_graphs_count_whole():
    store = from_pyg([divided_graph(20, seed) for seed in range(3)])
    other = store.with_splits({"train": np.array([0, 1]), "val": np.array([2])})
    assert not other.divides_nodes
    assert other.split_size("train") == 2


def test_only_targets_of_nodes_are_divided_node_by_node():
    chunk = replace(path_of_three(np.array([1, 2, 3])), y=np.ones((1, 1), np.float32))
    with pytest.raises(GritError, match="only targets of nodes .* these are graph-level ones"):
        GraphStore.in_memory(
            chunk, name="toy", graphs=SCHEMA.model_copy(update={"level": "graph"}), task=TASK, splits=WHOLE
        )


def test_a_target_that_is_no_class_is_not_written(tmp_path):
    classes = TaskSpec(kind="multiclass", targets=("y",), classes=("a", "b"), loss="cross-entropy", metric="accuracy")
    chunk = replace(path_of_three(None), y=np.full((3, 1), 2.0, np.float32))
    with (
        StoreWriter(tmp_path / "store", name="toy", graphs=SCHEMA, task=classes, source="here") as writer,
        pytest.raises(GritError, match=r"a target is 2\.0, expected a class: 0 to 1"),
    ):
        writer.append(chunk)
