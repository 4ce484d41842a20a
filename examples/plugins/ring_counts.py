"""A data set from outside: random graphs, and how many rings each has (edges - nodes + components).

    grit train ring-counts.yaml --plugin examples/plugins/ring_counts.py        with ``dataset: ring-counts`` in the file
    grit train zinc-mini dataset=ring-counts --plugin examples/plugins/ring_counts.py

A graph depends on (seed, split, number) alone, so that any process can make any of them.
"""

import numpy as np

import grit
from grit.datasets import Benchmark
from grit.datasets.benchmarks.benchmark import Published, regression
from grit.datasets.benchmarks.generated import generated_source
from grit.datasets.benchmarks.sbm import SPLITS
from grit.graphs.chunk import ArrayGraph

SIZES = (200, 50, 50)  # graphs of train, val and test


def ring_graph(seed, split, number):
    """A random graph of 4 to 10 nodes; nodes and edges carry nothing."""
    rng = np.random.default_rng([seed, SPLITS.index(split), number])
    n = int(rng.integers(4, 11))
    upper = np.triu(rng.random((n, n)) < 0.3, 1)
    edges = np.stack(np.nonzero(upper | upper.T))
    rings = upper.sum() - n + components(upper)
    return ArrayGraph(
        x=np.zeros((n, 0), dtype=np.float32),
        edge_index=edges,
        edge_attr=np.zeros((edges.shape[1], 0), dtype=np.float32),
        y=np.array([[rings]], dtype=np.float32),
    )


def components(upper):
    """The number of components, each known by its node of lowest number."""
    lowest = np.arange(len(upper))
    for _ in upper:
        for a, b in zip(*np.nonzero(upper), strict=True):
            lowest[a] = lowest[b] = min(lowest[a], lowest[b])
    return np.unique(lowest).size


grit.DATASETS["ring-counts"] = Benchmark(
    name="ring-counts",
    title="300 generated graphs: the number of independent rings",
    schema=grit.GraphSchema(node=grit.Features(kind="none"), edge=grit.Features(kind="none")),
    task=regression("rings"),
    published=Published(graphs=300, nodes=7.0, edges=13.8),
    sources=(generated_source(ring_graph, SIZES, default_seed=0, note="generated"),),
)
