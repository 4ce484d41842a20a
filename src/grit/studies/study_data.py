"""The data that a study trains on: the data set itself, some of its graphs, or a stand-in; and what to say about it."""

import hashlib
from typing import NamedTuple

from grit.datasets import DATASETS, load, store_path
from grit.datasets.pipeline.splits import SPLITS
from grit.errors import GritError
from grit.graphs.store import GraphStore
from grit.studies.stand_ins import STAND_INS, stand_in_store
from grit.studies.study import Workbench

Sizes = tuple[int, int, int]


class StudyData(NamedTuple):
    """Graphs to train on.

    Attributes:
        store: The graphs.
        is_benchmark: Whether they are the whole data set and the budget is ``paper``, so that results may stand beside
            published ones.
        note: What they are, if that is not what the name says; else empty.
    """

    store: GraphStore
    is_benchmark: bool
    note: str

    @property
    def sizes(self) -> str:
        """Graphs of train, val and test, in words."""
        return " / ".join(f"{self.store.split(split).size:,}" for split in SPLITS)


def open_data(bench: Workbench, name: str, sizes: Sizes | None) -> StudyData:
    """The data set ``name`` for a study.

    A data set that has not been built is replaced by its stand-in, if the budget allows that; otherwise the error says how
    to build it. A study that goes on must find the graphs that it began with.

    Args:
        bench: Whose root and budget decide.
        name: Entry of `DATASETS`.
        sizes: At most this many graphs, the first ones, of train, val and test; None for all.
    """
    built = store_path(name, bench.root).exists()
    if not built and sizes is not None and name in STAND_INS and bench.budget in STAND_INS[name].budgets:
        data = StudyData(
            stand_in_store(name, sizes), False, f"{name} has not been built; in its place: {STAND_INS[name].note}"
        )
    else:
        data = _opened(load(name, bench.root), name, sizes, bench.budget)
    begun_with = bench.piece(f"data {name}", lambda: fingerprint(data.store))
    if begun_with != fingerprint(data.store):
        raise GritError(
            f"this study was begun with other graphs of {name} than those that are there now. "
            f"Name another folder with --run, or remove {str(bench.folder)!r}."
        )
    return data


def _opened(store: GraphStore, name: str, sizes: Sizes | None, budget: str) -> StudyData:
    """A built store, or the first graphs of it."""
    built = store.manifest.built
    is_whole = built.get("limit") == "none" and (
        built.get("source") == DATASETS[name].sources[0].name or len(store) == DATASETS[name].published.graphs
    )
    notes = [] if is_whole else [f"{name} was built with {len(store):,} of {DATASETS[name].published.graphs:,} graphs"]
    notes += [f"{name}: {built['note']}"] if built.get("note") else []
    return StudyData(first_graphs(store, sizes), is_whole and sizes is None and budget == "paper", "; ".join(notes))


def first_graphs(store: GraphStore, sizes: Sizes | None) -> GraphStore:
    """The store with at most this many graphs of train, val and test, the first ones; None for all."""
    if sizes is None:
        return store
    return store.with_splits({split: store.split(split)[:size] for split, size in zip(SPLITS, sizes, strict=True)})


def fingerprint(store: GraphStore) -> str:
    """SHA-256 of the sizes and targets of every split's graphs."""
    digest = hashlib.sha256()
    for split in SPLITS:
        members = store.split(split)
        digest.update(store.nodes_per_graph(members).tobytes())
        digest.update(store.targets(members).tobytes())
    return digest.hexdigest()
