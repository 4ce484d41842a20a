"""The table of studies. A study's file is imported when it is run, because several need heavy packages."""

import difflib
from importlib import import_module

from grit.errors import GritError
from grit.studies.study import Study, Workbench


def _study(module: str, paper: str, summary: str, *free: str) -> Study:
    def run(bench: Workbench) -> None:
        import_module(f"grit.studies.{module}").run(bench)

    return Study(summary, paper, run, free)


STUDIES: dict[str, Study] = {
    "expressivity": _study("theory.expressivity", "Proposition 2", "Which graphs RRWP tells apart, and which not"),
    "propositions": _study(
        "theory.propositions", "Propositions 1-3", "The propositions and printed mistakes as checks"
    ),
    "figures": _study("figures", "Figures of RRWP", "RRWP drawn on fluorescein, two communities, two cubic graphs"),
    "khop": _study("khop.experiment", "Synthetic experiment", "Can one attention learn to attend to k-hop neighbours?"),
    "table1": _study(
        "benchmarks.table1", "Table 1", "ZINC, MNIST, CIFAR10, PATTERN and CLUSTER beside all published rows", "ours"
    ),
    "lrgb": _study(
        "benchmarks.table2", "Table 2", "Peptides-func and Peptides-struct beside all published rows", "ours"
    ),
    "zinc-full": _study("benchmarks.table3", "Table 3", "ZINC-full beside all published rows", "ours"),
    "pcqm4mv2": _study("benchmarks.table4", "Table 4", "PCQM4Mv2 beside all published rows", "ours"),
    "race": _study(
        "race.race",
        "Tables 1-4",
        "Every system on one data set at the same budget: epochs, minutes, or as published",
        "only",
        "seeds",
    ),
    "predictor": _study(
        "predictor.predictor",
        "Beyond the paper",
        "Tables of molecules: GRIT beside forests and boosting, and the coverage of its intervals",
        "tables",
        "only",
        "seeds",
    ),
    "ablations": _study("benchmarks.ablations", "Table of ablations", "ZINC with one design choice changed at a time"),
    "walk-steps": _study("benchmarks.walk_steps", "Table of K", "ZINC with 2 to 42 walk steps"),
    "significance": _study(
        "benchmarks.asterisks", "Appendix, significance", "Do the asterisks follow from the printed means?"
    ),
    "runtime": _study(
        "runtime.runtime_table", "Appendix, runtime", "Time and memory of SAN, GPS and GRIT on ZINC, as ratios"
    ),
}


def find_study(name: str) -> Study:
    """The entry of that name."""
    if name not in STUDIES:
        near = difflib.get_close_matches(name, STUDIES, 1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise GritError(f"unknown study {name!r}{hint}. `grit reproduce` lists them.")
    return STUDIES[name]
