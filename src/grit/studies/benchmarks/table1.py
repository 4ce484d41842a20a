"""Table 1 of the paper: ZINC, MNIST, CIFAR10, PATTERN and CLUSTER.

``grit reproduce table1 [only=zinc,pattern] [device=cuda] [ours=runs/race-small]``
"""

from grit.studies.benchmarks.benchmark_table import run_benchmarks
from grit.studies.benchmarks.published import TABLE_1
from grit.studies.runs import SMOKE, StudySize
from grit.studies.study import Workbench


def _small(train: int, rest: int, *overrides: str) -> StudySize:
    return StudySize(seeds=(0, 1), sizes=(train, rest, rest), overrides=overrides)


SCALES = {
    "zinc": {"smoke": SMOKE, "small": _small(2_000, 1_000, "train.epochs=20")},
    "mnist": {"smoke": SMOKE, "small": _small(1_000, 500, "train.epochs=10")},
    "cifar10": {"smoke": SMOKE, "small": _small(500, 250, "train.epochs=10")},
    "pattern": {"smoke": SMOKE, "small": _small(300, 100, "train.epochs=5", "train.batch_size=8")},
    "cluster": {"smoke": SMOKE, "small": _small(300, 100, "train.epochs=5", "train.batch_size=8")},
}


def run(bench: Workbench) -> None:
    """Write the tables ``results`` and ``published``."""
    run_benchmarks(bench, TABLE_1, SCALES)
