"""PATTERN: find the nodes of a planted pattern in a random graph (Dwivedi et al. 2020)."""

from grit.datasets.benchmarks.benchmark import Benchmark, Published
from grit.datasets.benchmarks.generated import generated_source
from grit.datasets.benchmarks.official_pyg import official_source
from grit.datasets.benchmarks.sbm import pattern_graph_number
from grit.graphs.schema import Features, GraphSchema, TaskSpec

_SIZES = (10_000, 2_000, 2_000)

# A data set has only a hundred patterns, so their mean size, and with it the number of edges, depends on the draw: the parameters
# give 5,870 edges on average over seeds, the official draw has 6,099. This is the first seed within 3 % of the official draw.
_SEED = 1

PATTERN = Benchmark(
    name="pattern",
    title="PATTERN, 14,000 generated graphs: which nodes belong to the pattern",
    schema=GraphSchema(node=Features(kind="numeric", sizes=(3,)), edge=Features(kind="none"), level="node"),
    task=TaskSpec(
        kind="binary",
        targets=("in the pattern",),
        classes=("host", "pattern"),
        loss="weighted_cross_entropy",
        metric="accuracy-sbm",
    ),
    published=Published(graphs=14_000, nodes=118.9, edges=6098.9),
    sources=(official_source("PATTERN", _SIZES), generated_source(pattern_graph_number, _SIZES, _SEED)),
)
