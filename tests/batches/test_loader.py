from dataclasses import replace

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import grit
from grit.batches.loader import Loader
from grit.batches.spec import BatchSpec
from grit.datasets import from_pyg

SPEC = BatchSpec(walk_steps=3)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    rng = np.random.default_rng(0)
    graphs = []
    for number in range(37):
        n = int(rng.integers(1, 12))
        edges = torch.from_numpy(rng.integers(0, n, (2, 2 * n)))
        graphs.append(Data(x=torch.full((n, 1), number % 5), edge_index=edges, y=torch.tensor([float(number)])))
    return from_pyg(graphs, splits={"train": range(30), "val": range(30, 37)}, out=tmp_path_factory.mktemp("s") / "s")


def loader(store, spec=SPEC, **options):
    return Loader(store, store.split("train"), spec, **{"batch_size": 8, "shuffle": True, "seed": 1, **options})


def numbers(batches):
    return [batch.y[:, 0].int().tolist() for batch in batches]


def test_every_graph_once_in_an_order_of_each_epoch(store):
    load = loader(store)
    first, second = numbers(load.epoch(0)), numbers(load.epoch(1))
    assert sorted(sum(first, [])) == sorted(sum(second, [])) == list(range(30))
    assert first != second
    assert first == numbers(loader(store).epoch(0))
    assert first != numbers(loader(store, seed=2).epoch(0))
    assert len(load) == 4
    assert load.num_graphs == 30
    assert numbers(loader(store, shuffle=False)) == [
        list(range(0, 8)),
        list(range(8, 16)),
        list(range(16, 24)),
        list(range(24, 30)),
    ]


def test_begins_at_any_batch(store):
    load = loader(store)
    assert numbers(load.epoch(3, start=2)) == numbers(load.epoch(3))[2:]
    assert list(load.epoch(3, start=4)) == []


@pytest.mark.parametrize("workers", [1, 2])
def test_worker_processes_give_the_same(store, workers):
    here, there = list(loader(store).epoch(2, start=1)), list(loader(store, num_workers=workers).epoch(2, start=1))
    assert numbers(here) == numbers(there)
    for a, b in zip(here, there, strict=True):
        assert torch.equal(a.pair_encoding, b.pair_encoding)
        assert torch.equal(a.graphs.edge_index, b.graphs.edge_index)


@pytest.mark.parametrize(
    ("spec", "options"),
    [
        (BatchSpec(encoding="rwse", walk_steps=5), {}),
        (BatchSpec(encoding="spd", walk_steps=4), {}),
        (replace(SPEC, pairs="edges"), {}),
        (replace(SPEC, dtype=torch.float64), {}),
        (replace(SPEC, encoding="rwse", pairs="edges", dtype=torch.float64), {"max_pairs": 150}),
    ],
)
def test_worker_processes_give_the_same_with_every_option(store, spec, options):
    here, there = list(loader(store, spec, **options)), list(loader(store, spec, num_workers=2, **options))
    usual = list(loader(store))
    assert len(here) == len(there)
    differs = False
    for a, b, other in zip(here, there, usual, strict=False):
        differs |= (
            a.pair_encoding.shape != other.pair_encoding.shape or a.pair_encoding.dtype != other.pair_encoding.dtype
        )
        for name in ("node_encoding", "pair_encoding", "log_degree", "y"):
            one, two = getattr(a, name), getattr(b, name)
            assert one.dtype == two.dtype, name
            assert torch.equal(one, two), name
        assert torch.equal(a.pairs.edge_pair, b.pairs.edge_pair)
        assert a.num_pairs == b.num_pairs
    assert differs  # otherwise the options would not matter here


def test_a_budget_that_is_met_exactly(tmp_path):
    """Graphs of 2, 2, 4, 1, 3, 3, 1 and 5 nodes: 4 + 4 pairs, 16, 1 + 9, 9 + 1, and one that is too large alone."""
    sizes = [2, 2, 4, 1, 3, 3, 1, 5]
    edges = torch.zeros(2, 0, dtype=torch.long)
    graphs = [
        Data(x=torch.ones(n, 1), edge_index=edges, y=torch.tensor([float(number)])) for number, n in enumerate(sizes)
    ]
    store = from_pyg(graphs, splits={"train": range(8)})

    def batches(budget):
        batch_list = list(loader(store, shuffle=False, max_pairs=budget))
        return numbers(batch_list), [batch.num_pairs for batch in batch_list]

    assert batches(8) == ([[0, 1], [2], [3], [4], [5], [6], [7]], [8, 16, 1, 9, 9, 1, 25])
    assert batches(10) == ([[0, 1], [2], [3, 4], [5, 6], [7]], [8, 16, 10, 10, 25])
    assert batches(24) == ([[0, 1, 2], [3, 4, 5, 6], [7]], [24, 20, 25])


def test_budget_of_pairs(store):
    for batch in loader(store, max_pairs=200).epoch(0):
        assert batch.num_pairs <= 200
    assert sorted(sum(numbers(loader(store, max_pairs=1).epoch(0)), [])) == list(range(30))
    assert all(len(batch) == 1 for batch in loader(store, max_pairs=1).epoch(0))


def test_options_reach_the_batch(store):
    batch = next(iter(loader(store, BatchSpec(5, "rwse", "edges"))))
    assert batch.node_encoding.shape[1] == 5
    assert batch.pair_encoding.shape[1] == 0
    assert batch.num_pairs < int((batch.graphs.nodes_per_graph**2).sum())


def test_pins(store, monkeypatch):
    pinned = []
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: pinned.append(tensor) or tensor.clone())
    next(iter(loader(store, pin_memory=True)))
    assert pinned


@pytest.mark.parametrize("options", [{"batch_size": 0}, {"max_pairs": 0}, {"num_workers": -1}])
def test_bad_options(store, options):
    with pytest.raises(grit.GritError, match="must be at least 1"):
        loader(store, **options)


def test_an_empty_split(store):
    with pytest.raises(grit.GritError, match="the split is empty"):
        Loader(store, np.zeros(0, dtype=np.int64), SPEC, batch_size=2)


def test_one_graph_at_a_time(store):
    assert numbers(loader(store, batch_size=1, shuffle=False)) == [[number] for number in range(30)]
