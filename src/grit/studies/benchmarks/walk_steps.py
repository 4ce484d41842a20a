"""How the number of walk steps K matters: the paper's sensitivity analysis on ZINC, all else fixed.

``grit reproduce walk-steps [only=2,21] [device=cuda]``
"""

from grit.studies.benchmarks.zinc_variants import Variant, train_variants
from grit.studies.study import Workbench

PUBLISHED = {
    2: "0.147 ± 0.006",
    7: "0.063 ± 0.003",
    14: "0.063 ± 0.004",
    18: "0.060 ± 0.002",
    21: "0.059 ± 0.002",
    24: "0.060 ± 0.002",
    42: "0.061 ± 0.001",
}


def run(bench: Workbench) -> None:
    """Write the table ``results``."""
    train_variants(
        bench,
        {str(k): Variant(f"K = {k}", "zinc", (f"encoding.walk_steps={k}",), mae) for k, mae in PUBLISHED.items()},
        base="21",
        title="RRWP with K walk steps on ZINC",
        remark="K = 2 is the identity and one step: what message passing sees. The other hyperparameters were tuned for K = 21.",
    )
