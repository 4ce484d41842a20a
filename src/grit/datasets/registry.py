"""The table `DATASETS`."""

import difflib

from grit.datasets.benchmarks.benchmark import Benchmark
from grit.datasets.benchmarks.cifar10 import CIFAR10
from grit.datasets.benchmarks.cluster import CLUSTER
from grit.datasets.benchmarks.mnist import MNIST
from grit.datasets.benchmarks.moleculenet import BBBP, ESOL, QM9_GAP, TOX21
from grit.datasets.benchmarks.pattern import PATTERN
from grit.datasets.benchmarks.pcqm4mv2 import PCQM4MV2
from grit.datasets.benchmarks.peptides import PEPTIDES_FUNC, PEPTIDES_STRUCT
from grit.datasets.benchmarks.zinc import ZINC, ZINC_FULL
from grit.datasets.benchmarks.zinc_mini import ZINC_MINI
from grit.errors import GritError

DATASETS: dict[str, Benchmark] = {
    "zinc": ZINC,
    "zinc-full": ZINC_FULL,
    "mnist": MNIST,
    "cifar10": CIFAR10,
    "pattern": PATTERN,
    "cluster": CLUSTER,
    "peptides-func": PEPTIDES_FUNC,
    "peptides-struct": PEPTIDES_STRUCT,
    "pcqm4mv2": PCQM4MV2,
    "zinc-mini": ZINC_MINI,
    "qm9-gap": QM9_GAP,
    "esol": ESOL,
    "bbbp": BBBP,
    "tox21": TOX21,
}


def find_dataset(name: str) -> Benchmark:
    """The entry of that name."""
    if name not in DATASETS:
        near = difflib.get_close_matches(name, DATASETS, n=1)
        hint = f", did you mean {near[0]!r}?" if near else "."
        raise GritError(f"unknown data set {name!r}{hint} There are {', '.join(DATASETS)}.")
    return DATASETS[name]
