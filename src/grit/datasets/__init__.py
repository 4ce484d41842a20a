"""The benchmarks of the paper: the table `DATASETS`."""

from grit.datasets.benchmark import Benchmark
from grit.errors import GritError
from grit.graphs.schema import OGB_ATOM, OGB_BOND, Features, GraphSchema

_NO_FEATURES = Features(kind="none")


def _category(size: int) -> Features:
    return Features(kind="category", sizes=(size,))


def _numeric(width: int) -> Features:
    return Features(kind="numeric", sizes=(width,))


DATASETS: dict[str, Benchmark] = {
    "zinc": Benchmark(schema=GraphSchema(node=_category(21), edge=_category(4))),
    "zinc-full": Benchmark(schema=GraphSchema(node=_category(28), edge=_category(4))),
    "mnist": Benchmark(schema=GraphSchema(node=_numeric(3), edge=_numeric(1), num_outputs=10)),
    "cifar10": Benchmark(schema=GraphSchema(node=_numeric(5), edge=_numeric(1), num_outputs=10)),
    "pattern": Benchmark(schema=GraphSchema(node=_numeric(3), edge=_NO_FEATURES, level="node")),
    "cluster": Benchmark(schema=GraphSchema(node=_numeric(7), edge=_NO_FEATURES, level="node", num_outputs=6)),
    "peptides-func": Benchmark(schema=GraphSchema(node=OGB_ATOM, edge=OGB_BOND, num_outputs=10)),
    "peptides-struct": Benchmark(schema=GraphSchema(node=OGB_ATOM, edge=OGB_BOND, num_outputs=11)),
    "pcqm4mv2": Benchmark(schema=GraphSchema(node=OGB_ATOM, edge=OGB_BOND)),
}


def find_dataset(name: str) -> Benchmark:
    """The entry of that name."""
    if name not in DATASETS:
        raise GritError(f"unknown data set {name!r}; there are {', '.join(DATASETS)}.")
    return DATASETS[name]
