"""The types behind the table `DATASETS`: a data set, the ways it can be built, and what a way must give."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from grit.datasets.pipeline.featurise_rows import Piece, default_processes
from grit.datasets.pipeline.source_files import SourceFile
from grit.datasets.pipeline.splits import SPLITS, random_split
from grit.datasets.pipeline.write_store import Collected
from grit.errors import GritError
from grit.graphs.chunk import Array
from grit.graphs.schema import GraphSchema, TaskSpec


@dataclass(frozen=True)
class BuildOptions:
    """How a data set is built.

    Attributes:
        processes: How many convert in parallel; 0 for one per processor.
        seed: Of generated data and of random splits; None for the usual one.
        limit: At most this many graphs of each split; None for all.
        trust: Whether pickles without a published checksum may be read (arrays and tensors only, in any case).
    """

    processes: int = 0
    seed: int | None = None
    limit: int | None = None
    trust: bool = False

    @property
    def num_processes(self) -> int:
        """``processes``, or all processors where it is 0."""
        return self.processes or default_processes()


class BuildPlan(NamedTuple):
    """What a source gives.

    Attributes:
        total: Rows in all, for the progress bar; None if not known.
        pieces: The graphs, in order.
        splits: Called when all graphs are there.
    """

    total: int | None
    pieces: Iterator[Piece]
    splits: Callable[[Collected], dict[str, Array]]


@dataclass(frozen=True)
class Source:
    """One way to build a data set.

    Attributes:
        name: ``official`` files as published, or another form.
        files: That must be in the folder; none for generated and bundled data.
        read: (folder, options) -> `BuildPlan`.
        note: What the user should know of the result.
    """

    name: str
    files: tuple[SourceFile, ...]
    read: Callable[[Path, BuildOptions], BuildPlan]
    note: str = ""


@dataclass(frozen=True)
class Published:
    """Statistics as the paper or the data's authors state them; edges count both directions."""

    graphs: int
    nodes: float
    edges: float


@dataclass(frozen=True)
class Benchmark:
    """One entry of `DATASETS`.

    Attributes:
        name: Its key in the table.
        title: One line for listings.
        schema: Features and targets.
        task: What is predicted.
        published: Statistics to compare with.
        sources: Ways to build it, the official one first.
        featuriser: Entry of `grit.datasets.molecules.featurisers.FEATURISERS` that its graphs are made with; None if they are
            not molecules.
    """

    name: str
    title: str
    schema: GraphSchema
    task: TaskSpec
    published: Published
    sources: tuple[Source, ...]
    featuriser: str | None = None

    def __post_init__(self) -> None:
        if self.schema.num_outputs != self.task.num_outputs:
            raise GritError(
                f"{self.name}: the schema has {self.schema.num_outputs} outputs, the task {self.task.num_outputs}."
            )


def capped(sizes: tuple[int, int, int], limit: int | None) -> dict[str, int]:
    """How many graphs of train, val and test are wanted."""
    return {name: size if limit is None else min(size, limit) for name, size in zip(SPLITS, sizes, strict=True)}


def consecutive(counts: dict[str, int]) -> Callable[[Collected], dict[str, Array]]:
    """Splits that follow one another in the order of the graphs."""

    def choose(found: Collected) -> dict[str, Array]:
        begin, splits = 0, {}
        for name, count in counts.items():
            splits[name] = np.arange(begin, begin + count)
            begin += count
        if begin != found.count:
            raise GritError(f"expected {begin:,} graphs ({counts}), found {found.count:,}.")
        return splits

    return choose


def seeded(options: BuildOptions) -> Callable[[Collected], dict[str, Array]]:
    """A random 80 / 10 / 10 division."""
    return lambda found: random_split(found.count, options.seed or 0)


def regression(*targets: str, standardise: bool = False) -> TaskSpec:
    """Regression by L1 loss, measured as mean absolute error."""
    return TaskSpec(kind="regression", targets=targets, loss="l1", metric="mae", standardise=standardise)
