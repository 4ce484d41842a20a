"""A source that generates its graphs, the common part of PATTERN and CLUSTER."""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import cast

from grit.datasets.benchmarks.benchmark import BuildOptions, BuildPlan, Source, capped, consecutive
from grit.datasets.benchmarks.sbm import Split
from grit.datasets.pipeline.featurise_rows import graph_pieces
from grit.graphs.chunk import ArrayGraph

NumberedGraph = Callable[[int, Split, int], ArrayGraph]
"""(seed, split, number) -> graph."""


_NOTE = "drawn from the published distribution: the official random draws cannot be repeated"


def generated_source(graph: NumberedGraph, sizes: tuple[int, int, int], default_seed: int, note: str = _NOTE) -> Source:
    """The source ``generate``; ``default_seed`` is used where the user names none, ``note`` is shown with the data set."""
    return Source("generate", (), partial(_read, graph=graph, sizes=sizes, default_seed=default_seed), note)


@dataclass(frozen=True)
class _GeneratedGraph:
    """Graph number k of the data set, counted through train, val and test."""

    graph: NumberedGraph
    seed: int
    counts: dict[str, int]

    def __call__(self, number: int) -> ArrayGraph:
        ends = list(accumulate(self.counts.values()))
        place = bisect_right(ends, number)
        first = ends[place] - list(self.counts.values())[place]
        return self.graph(self.seed, cast(Split, list(self.counts)[place]), number - first)


def _read(
    folder: Path, options: BuildOptions, *, graph: NumberedGraph, sizes: tuple[int, int, int], default_seed: int
) -> BuildPlan:
    counts = capped(sizes, options.limit)
    seed = default_seed if options.seed is None else options.seed
    total = sum(counts.values())
    pieces = graph_pieces(_GeneratedGraph(graph, seed, counts), total, options.num_processes)
    return BuildPlan(total, pieces, consecutive(counts))
