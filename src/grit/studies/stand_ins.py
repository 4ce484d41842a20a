"""Graphs that take the place of a data set that has not been built, so that a study's path can be walked without it.

Every stand-in has the features and targets of the data set itself. PATTERN and CLUSTER are drawn from the published
distribution and the molecules of ZINC are real ones; the others are random and teach nothing.
"""

from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from typing import NamedTuple

import numpy as np

from grit.datasets import DATASETS
from grit.datasets.benchmarks.sbm import SPLITS, Split, cluster_graph_number, pattern_graph_number
from grit.datasets.benchmarks.superpixels import CIFAR10, MNIST, SuperpixelSettings, superpixel_graph
from grit.datasets.benchmarks.zinc_mini import bundled_smiles
from grit.datasets.molecules.smiles import ogb_graph, zinc_graph, zinc_target
from grit.graphs.chunk import Array, ArrayGraph, GraphChunk
from grit.graphs.store import GraphStore

_BUNDLED = (2_000, 250, 250)  # molecules that come with the package
# Side chains of amino acids, as SMILES branches.
_SIDE_CHAINS = ("C", "CO", "CC(=O)O", "CCCCN", "Cc1ccccc1", "CC(C)C", "CS", "Cc1ccc(O)cc1", "C(C)CC", "CCC(=O)N")


class StandIn(NamedTuple):
    """What takes the place of one data set.

    Attributes:
        graph: (split, number) -> graph.
        note: What it is, for the reader of a table.
        budgets: With which it may be used.
        sizes: Graphs that there are of train, val and test; None for any number.
    """

    graph: Callable[[Split, int], ArrayGraph]
    note: str
    budgets: tuple[str, ...] = ("smoke",)
    sizes: tuple[int, int, int] | None = None


def stand_in_store(name: str, sizes: tuple[int, int, int]) -> GraphStore:
    """At most this many graphs of train, val and test, in memory, with the schema and task of the data set."""
    stand_in, benchmark = STAND_INS[name], DATASETS[name]
    counts = sizes if stand_in.sizes is None else tuple(map(min, sizes, stand_in.sizes))
    ends = np.cumsum([0, *counts])
    graphs = [
        stand_in.graph(split, number) for split, count in zip(SPLITS, counts, strict=True) for number in range(count)
    ]
    return GraphStore.in_memory(
        GraphChunk.of(graphs),
        name=f"stand-in for {name}",
        graphs=benchmark.schema,
        task=benchmark.task,
        splits={split: np.arange(ends[place], ends[place + 1]) for place, split in enumerate(SPLITS)},
        molecules=benchmark.featuriser,
    )


def _rng(split: Split, number: int) -> np.random.Generator:
    return np.random.default_rng([SPLITS.index(split), number])


def _random_picture(split: Split, number: int, side: int, channels: int, settings: SuperpixelSettings) -> ArrayGraph:
    """Coarse random patches, which SLIC can follow, with a random label."""
    rng = _rng(split, number)
    coarse = rng.integers(0, 256, (7, 7, channels), dtype=np.uint8)
    fine = -(-side // 7)
    image: Array = np.kron(coarse, np.ones((fine, fine, 1), dtype=np.uint8))[:side, :side]
    image = image[:, :, 0] if channels == 1 else image
    return superpixel_graph(image, label=int(rng.integers(10)), rng=rng, **asdict(settings))


def _random_peptide(split: Split, number: int, targets: int, binary: bool) -> ArrayGraph:
    rng = _rng(split, number)
    chain = "".join(f"NC({side})C(=O)" for side in rng.choice(_SIDE_CHAINS, rng.integers(3, 8)))
    y = rng.integers(0, 2, targets) if binary else rng.normal(size=targets)
    return ogb_graph(f"{chain}O")._replace(y=y.astype(np.float32)[None])


@cache
def _smiles() -> list[str]:
    return bundled_smiles()


def _bundled(split: Split, number: int) -> str:
    return _smiles()[sum(_BUNDLED[: SPLITS.index(split)]) + number]


def _zinc_molecule(split: Split, number: int, num_labels: int) -> ArrayGraph:
    smiles = _bundled(split, number)
    return zinc_graph(smiles, num_labels=num_labels)._replace(y=np.array([[zinc_target(smiles)]], dtype=np.float32))


def _molecule_with_random_gap(split: Split, number: int) -> ArrayGraph:
    gap = _rng(split, number).normal(5.0, 1.0, (1, 1)).astype(np.float32)
    return ogb_graph(_bundled(split, number))._replace(y=gap)


_RANDOM = "random {}, which only prove that the path runs"
_GENERATED = "graphs generated from the published distribution"

STAND_INS: dict[str, StandIn] = {
    "zinc": StandIn(
        lambda split, number: _zinc_molecule(split, number, 21),
        "zinc-mini, the molecules that come with the package: not the benchmark's",
        ("smoke", "small"),
        _BUNDLED,
    ),
    "zinc-full": StandIn(
        lambda split, number: _zinc_molecule(split, number, 28),
        "zinc-mini, the molecules that come with the package: not the benchmark's",
        sizes=_BUNDLED,
    ),
    "mnist": StandIn(
        lambda split, number: _random_picture(split, number, 28, 1, MNIST), _RANDOM.format("pictures and labels")
    ),
    "cifar10": StandIn(
        lambda split, number: _random_picture(split, number, 32, 3, CIFAR10), _RANDOM.format("pictures and labels")
    ),
    "pattern": StandIn(lambda split, number: pattern_graph_number(1, split, number), _GENERATED, ("smoke", "small")),
    "cluster": StandIn(lambda split, number: cluster_graph_number(0, split, number), _GENERATED, ("smoke", "small")),
    "peptides-func": StandIn(
        lambda split, number: _random_peptide(split, number, 10, binary=True), _RANDOM.format("peptides and labels")
    ),
    "peptides-struct": StandIn(
        lambda split, number: _random_peptide(split, number, 11, binary=False), _RANDOM.format("peptides and numbers")
    ),
    "pcqm4mv2": StandIn(
        _molecule_with_random_gap, "molecules that come with the package with random targets", sizes=_BUNDLED
    ),
}
