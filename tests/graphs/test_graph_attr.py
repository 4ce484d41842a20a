"""Numbers and weights that graphs carry beside their nodes and edges: how they are read, stored and gathered."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from torch_geometric.data import Batch, Data

from grit.datasets import from_pyg
from grit.errors import GritError
from grit.graphs.chunk import ArrayGraph, GraphChunk
from grit.graphs.convert import pack, pack_batch
from grit.graphs.schema import Features, GraphSchema, TaskSpec
from grit.graphs.store import GraphStore
from grit.graphs.store_writer import StoreWriter
from tests.graph_strategies import featured_graphs
from tests.training.small import small_graphs, small_store

SCHEMA = GraphSchema(node=Features(kind="none"), edge=Features(kind="none"), graph_features=2)
TASK = TaskSpec(kind="regression", targets=("y",), loss="l1", metric="mae")
NUMBERS = st.one_of(st.just(float("nan")), st.floats(-1e6, 1e6, width=32))


@st.composite
def described_graphs(draw, width=3):
    """Graphs of every awkward kind with a target and numbers of their own, some missing."""
    data = draw(featured_graphs())
    data.graph_attr = torch.from_numpy(draw(arrays(np.float32, (1, width), elements=NUMBERS)))
    data.y = torch.tensor([1.0])
    return data


def one_node(graph_attr=(1.0, 2.0), weight=None):
    return ArrayGraph(
        x=np.zeros((1, 0), np.float32),
        edge_index=np.zeros((2, 0), np.int64),
        edge_attr=np.zeros((0, 0), np.float32),
        y=np.ones((1, 1), np.float32),
        graph_attr=None if graph_attr is None else np.array(graph_attr),
        weight=weight,
    )


def write(path, *chunks, schema=SCHEMA):
    with StoreWriter(path, name="toy", graphs=schema, task=TASK, source="here") as writer:
        for chunk in chunks:
            writer.append(chunk)
        writer.finish({})
    return GraphStore.open(path)


def in_memory(chunk, schema=SCHEMA):
    return GraphStore.in_memory(chunk, name="toy", graphs=schema, task=TASK, splits={})


class TestGraphsOfPyG:
    @settings(max_examples=30)
    @given(st.lists(described_graphs(), min_size=1, max_size=5), st.data())
    def test_every_graph_keeps_its_own_numbers(self, tmp_path_factory, graphs, data):
        wanted = torch.cat([graph.graph_attr for graph in graphs])
        np.testing.assert_array_equal(pack(graphs).graph_attr, wanted)
        np.testing.assert_array_equal(pack_batch(Batch.from_data_list(graphs)).graph_attr, wanted)
        folder = tmp_path_factory.mktemp("stores")
        for out in (None, folder / "store"):
            store = from_pyg(graphs, task="regression", splits={"train": range(len(graphs))}, out=out)
            assert store.schema.graph_features == 3
            order = data.draw(st.permutations(range(len(graphs))))
            np.testing.assert_array_equal(store.gather(order).graph_attr, wanted[list(order)])
            np.testing.assert_array_equal(store.graph_attr(order), wanted[list(order)])
        part = pack(graphs).part(len(graphs) // 2, len(graphs))
        np.testing.assert_array_equal(part.graph_attr, wanted[len(graphs) // 2 :])

    def test_whole_numbers_and_flat_ones_are_taken(self):
        graphs = [Data(num_nodes=1, edge_index=torch.zeros(2, 0, dtype=torch.int64)) for _ in range(2)]
        for number, graph in enumerate(graphs):
            graph.graph_attr = torch.tensor([number, 7])
        wanted = torch.tensor([[0.0, 7.0], [1.0, 7.0]])
        assert torch.equal(pack(graphs).graph_attr, wanted)
        assert torch.equal(pack_batch(Batch.from_data_list(graphs)).graph_attr, wanted)

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            (torch.zeros(2, 3), r"graph 1: graph_attr has shape \(2, 3\), expected a tensor of shape \(1, F\)"),
            (torch.zeros(1, 2), "graph 1: graph_attr holds 2 numbers, that of graph 0 3"),
            (torch.tensor([[1.0, float("inf"), 0.0]]), "graph 1: graph_attr is infinite in column 1"),
            ("text", "graph 1: graph_attr has type str"),
            (torch.zeros(1, 3, dtype=torch.complex64), "graph 1: graph_attr has type torch.complex64"),
            (None, "graph_attr"),
        ],
    )
    def test_what_does_not_fit_is_refused(self, value, message):
        graphs = small_graphs(3)
        for graph in graphs:
            graph.graph_attr = torch.zeros(1, 3)
        if value is None:
            del graphs[1].graph_attr
        else:
            graphs[1].graph_attr = value
        with pytest.raises(GritError, match=message):
            pack(graphs)

    def test_they_go_with_targets_of_graphs(self):
        graphs = small_graphs(3)
        for graph in graphs:
            graph.y, graph.graph_attr = torch.ones(graph.num_nodes), torch.zeros(1, 2)
        with pytest.raises(GritError, match="goes with targets of whole graphs; these are node-level"):
            from_pyg(graphs)


class TestStores:
    @pytest.mark.parametrize(
        ("chunk", "message"),
        [
            (GraphChunk.of([one_node(None)]), "carry no numbers of their own"),
            (GraphChunk.of([one_node((1.0,))]), "must hold 2 numbers for each of 1 graphs"),
            (GraphChunk.of([one_node(), one_node((np.inf, 0.0))]), "graph 1: graph_attr is infinite"),
            (GraphChunk.of([one_node((1e39, 0.0))]), "graph 0: graph_attr is infinite or beyond 3e38"),
            (GraphChunk.of([one_node(weight=1.0), one_node(weight=-1.0)]), "graph 1: its weight is -1.0"),
            (GraphChunk.of([one_node(weight=np.nan)]), "graph 0: its weight is nan"),
            (replace(GraphChunk.of([one_node()]), graph_weight=np.ones(2)), "a number for each of 1 graphs"),
        ],
    )
    def test_what_does_not_fit_is_not_stored(self, tmp_path, chunk, message):
        with pytest.raises(GritError, match=message):
            in_memory(chunk)
        with pytest.raises(GritError, match=message):
            write(tmp_path / "store", chunk)
        assert not list(tmp_path.iterdir())

    def test_all_graphs_carry_them_or_none(self, tmp_path):
        for one, other in ((one_node(), one_node(None)), (one_node(weight=1.0), one_node())):
            with pytest.raises(GritError, match="some graphs carry .* and others do not"):
                GraphChunk.of([one, other])
            with pytest.raises(GritError, match="some graphs carry .* and others do not"):
                GraphChunk.join([GraphChunk.of([one]), GraphChunk.of([other])])
        weighted, plain = GraphChunk.of([one_node(weight=1.0)]), GraphChunk.of([one_node()])
        for chunks in ((weighted, plain), (plain, weighted)):
            with pytest.raises(GritError, match="either all graphs have a weight, or none"):
                write(tmp_path / "store", *chunks)

    def test_weights_are_gathered(self, tmp_path):
        chunk = GraphChunk.of([one_node(weight=weight) for weight in (0.0, 1.0, 2.5)])
        for store in (in_memory(chunk), write(tmp_path / "store", chunk)):
            assert store.weights([2, 0]).tolist() == [2.5, 0.0]
            assert store.gather([1, 2]).graph_weight.tolist() == [1.0, 2.5]
        assert small_store().weights([0]) is None
        assert small_store().gather([0]).graph_weight is None

    def test_only_graphs_have_weights(self):
        schema = GraphSchema(node=SCHEMA.node, edge=SCHEMA.edge, level="node")
        with pytest.raises(GritError, match="weights go with targets of whole graphs; these are node-level"):
            in_memory(GraphChunk.of([one_node(None, weight=1.0)]), schema)

    def test_older_versions_of_grit_do_not_open_them(self, tmp_path):
        """They would train without the numbers, or with all graphs alike."""
        write(tmp_path / "numbers", GraphChunk.of([one_node()]))
        plain = SCHEMA.model_copy(update={"graph_features": 0})
        write(tmp_path / "weights", GraphChunk.of([one_node(None, weight=1.0)]), schema=plain)
        for name in ("numbers", "weights"):
            assert json.loads((tmp_path / name / "manifest.json").read_text())["version"] == 4

    def test_stores_without_them_are_written_as_before(self, tmp_path):
        small_store(out=tmp_path / "plain")
        manifest = json.loads((tmp_path / "plain" / "manifest.json").read_text())
        assert manifest["version"] == 2
        assert set(manifest) == {
            *("format", "version", "name", "graphs", "task", "arrays", "source", "built", "rows", "skipped"),
            *("molecules", "skipped_sha256", "sha256"),
        }
        assert set(manifest["graphs"]) == {"node", "edge", "level", "num_outputs"}

    def test_a_store_that_lost_its_numbers_is_refused(self, tmp_path):
        write(tmp_path / "store", GraphChunk.of([one_node()]))
        (tmp_path / "store" / "graph_attr.npy").unlink()
        with pytest.raises(GritError, match=r"graph_attr.npy"):
            GraphStore.open(tmp_path / "store")


def test_only_predictions_for_graphs_have_numbers():
    with pytest.raises(ValueError, match="go with predictions for graphs, not for nodes"):
        GraphSchema(node=SCHEMA.node, edge=SCHEMA.edge, level="node", graph_features=1)
