"""Statistics of the training set that a model may ask for, by a parameter of the same name: the table `STATISTICS`."""

from collections.abc import Callable
from typing import Any

import numpy as np

from grit.graphs.chunk import Array
from grit.graphs.store import GraphStore

_AT_A_TIME = 1_000


def degree_histogram(store: GraphStore, members: Array) -> list[int]:
    """Number of nodes with 0, 1, 2 ... listed edges that leave them."""
    counts = np.zeros(1, dtype=np.int64)
    for start in range(0, members.size, _AT_A_TIME):
        found = np.bincount(store.gather(members[start : start + _AT_A_TIME]).degree().numpy())
        width = max(counts.size, found.size)
        counts = np.pad(counts, (0, width - counts.size)) + np.pad(found, (0, width - found.size))
    return [int(count) for count in counts]


# (store, numbers of the training graphs) -> what JSON can hold, because a run keeps it.
STATISTICS: dict[str, Callable[[GraphStore, Array], Any]] = {"degree_histogram": degree_histogram}
