"""Table 3 of the paper: ZINC-full.

``grit reproduce zinc-full [device=cuda] [ours=runs/race-small]``
"""

from grit.studies.benchmarks.benchmark_table import run_benchmarks
from grit.studies.benchmarks.published import ZINC_FULL
from grit.studies.runs import SMOKE, StudySize
from grit.studies.study import Workbench

_SMALL = StudySize(seeds=(0, 1), sizes=(5_000, 1_000, 1_000), overrides=("train.epochs=10", "train.batch_size=32"))
SCALES = {"zinc-full": {"smoke": SMOKE, "small": _SMALL}}


def run(bench: Workbench) -> None:
    """Write the tables ``results`` and ``published``."""
    run_benchmarks(bench, ZINC_FULL, SCALES)
