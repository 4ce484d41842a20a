"""CLUSTER: tell six communities of a random graph apart from one named member each (Dwivedi et al. 2020)."""

from grit.datasets.benchmarks.benchmark import Benchmark, Published
from grit.datasets.benchmarks.generated import generated_source
from grit.datasets.benchmarks.official_pyg import official_source
from grit.datasets.benchmarks.sbm import cluster_graph_number
from grit.graphs.schema import Features, GraphSchema, TaskSpec

_SIZES = (10_000, 1_000, 1_000)

CLUSTER = Benchmark(
    name="cluster",
    title="CLUSTER, 12,000 generated graphs: which community a node belongs to",
    schema=GraphSchema(
        node=Features(kind="numeric", sizes=(7,)), edge=Features(kind="none"), level="node", num_outputs=6
    ),
    task=TaskSpec(
        kind="multiclass",
        targets=("community",),
        classes=tuple("012345"),
        loss="weighted_cross_entropy",
        metric="accuracy-sbm",
    ),
    published=Published(graphs=12_000, nodes=117.2, edges=4303.9),
    sources=(official_source("CLUSTER", _SIZES), generated_source(cluster_graph_number, _SIZES, default_seed=0)),
)
