"""Table 4 of the paper: PCQM4Mv2, a single run.

``grit reproduce pcqm4mv2 [device=cuda] [ours=runs/race-small]``
"""

from grit.studies.benchmarks.benchmark_table import run_benchmarks
from grit.studies.benchmarks.published import PCQM4MV2
from grit.studies.runs import SMOKE, StudySize
from grit.studies.study import Workbench

_SMALL = StudySize(
    seeds=(0,),
    sizes=(1_500, 200, 200),
    overrides=("model.num_layers=4", "model.hidden_dim=64", "train.epochs=10", "train.batch_size=32", "train.lr=1e-3"),
)
SCALES = {"pcqm4mv2": {"smoke": SMOKE, "small": _SMALL, "paper": StudySize(seeds=(0,))}}


def run(bench: Workbench) -> None:
    """Write the tables ``results`` and ``published``."""
    run_benchmarks(bench, PCQM4MV2, SCALES)
