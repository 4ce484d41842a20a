"""Table 2 of the paper: Peptides-func and Peptides-struct of the long-range graph benchmark.

``grit reproduce lrgb [only=peptides-func] [device=cuda] [ours=runs/race-small]``
"""

from grit.studies.benchmarks.benchmark_table import run_benchmarks
from grit.studies.benchmarks.published import LRGB
from grit.studies.runs import SMOKE, StudySize
from grit.studies.study import Workbench

_SMALL = StudySize(seeds=(0, 1), sizes=(300, 100, 100), overrides=("train.epochs=5", "train.batch_size=8"))
SCALES = {name: {"smoke": SMOKE, "small": _SMALL} for name in ("peptides-func", "peptides-struct")}


def run(bench: Workbench) -> None:
    """Write the tables ``results`` and ``published``."""
    run_benchmarks(bench, LRGB, SCALES)
