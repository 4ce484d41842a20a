"""Batches of a stored data set, epoch by epoch."""

from collections.abc import Iterator

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from grit.batches.pair_batch import PairBatch
from grit.batches.sampling import batches_in_order, batches_within_budget, epoch_order, join_small
from grit.batches.spec import BatchSpec
from grit.errors import GritError
from grit.graphs.chunk import Array
from grit.graphs.store import GraphStore


class Loader:
    """Batches of some graphs of a store.

    The order depends on seed and epoch alone, and any batch of any epoch can be begun at, so that an interrupted run goes on
    exactly where it was.

    Args:
        store: The data.
        indices: Numbers of the graphs to go through, for example ``store.split("train")``.
        spec: How batches are made.
        batch_size: Graphs per batch, at most.
        shuffle: Whether every epoch has an order of its own; otherwise the order of ``indices``.
        seed: Of the shuffling.
        max_pairs: Budget of node pairs per batch: a batch is ended early rather than exceed it, so that a few large graphs cannot
            exhaust the memory. A graph that exceeds it alone makes a batch of its own.
        min_nodes: A batch with fewer nodes is joined to its neighbour: batch normalisation learns nothing from a single node.
        share: (k, p): of every batch, take the k-th of p parts, for p processes that work on it together.
        num_workers: Processes that prepare batches ahead; 0 prepares them in this one.
        pin_memory: Whether batches are page-locked for a GPU.
        split: Of a store that `divides_nodes`, which needs it: whose targets the batches carry, those of other nodes being
            unknown (NaN); ``all`` for every target. Other stores need none.
    """

    def __init__(
        self,
        store: GraphStore,
        indices: Array,
        spec: BatchSpec,
        *,
        batch_size: int,
        shuffle: bool = False,
        seed: int = 0,
        max_pairs: int | None = None,
        min_nodes: int = 1,
        share: tuple[int, int] = (0, 1),
        num_workers: int = 0,
        pin_memory: bool = False,
        split: str | None = None,
    ) -> None:
        if batch_size < 1 or (max_pairs is not None and max_pairs < 1) or num_workers < 0:
            raise GritError("batch_size and max_pairs must be at least 1, num_workers at least 0.")
        if len(indices) == 0:
            raise GritError(f"there are no graphs to load from {store.name}: the split is empty.")
        if store.divides_nodes and split is None:
            raise GritError(
                f"the nodes of {store.name} are divided: say whose targets the batches carry, split='train', 'val', 'test', "
                "or 'all'."
            )
        self.store = store
        self.indices = np.asarray(indices, dtype=np.int64)
        self.batch_size, self.max_pairs, self.min_nodes = batch_size, max_pairs, min_nodes
        self.shuffle, self.seed = shuffle, seed
        self.spec = spec
        self.share = share
        self.num_workers, self.pin_memory = num_workers, pin_memory
        self.split = None if split == "all" else split
        self._only_batch: PairBatch | None = None

    @property
    def num_graphs(self) -> int:
        """Graphs per epoch."""
        return int(self.indices.size)

    def batches(self, epoch: int = 0) -> list[Array]:
        """Numbers of this share's graphs in each batch of an epoch: over all shares, every graph once."""
        order = self.indices
        if self.shuffle:
            order = order[epoch_order(order.size, self.seed, epoch)]
        if self.max_pairs is None:
            whole = batches_in_order(order, self.batch_size)
        else:
            whole = batches_within_budget(
                order, self.store.nodes_per_graph(order) ** 2, self.batch_size, self.max_pairs
            )
        if self.min_nodes > 1:
            # Only a batch of fewer graphs than that can be too small.
            nodes = [
                int(self.store.nodes_per_graph(batch).sum()) if batch.size < self.min_nodes else self.min_nodes
                for batch in whole
            ]
            whole = join_small(whole, nodes, self.min_nodes)
        part, parts = self.share
        if any(batch.size < parts for batch in whole):
            smallest = min(batch.size for batch in whole)
            raise GritError(
                f"a batch of {smallest} graphs cannot be shared by {parts} processes: choose a batch size that leaves no "
                f"such rest of {self.num_graphs} graphs, or fewer processes."
            )
        return [batch[part::parts] for batch in whole]

    def epoch(self, epoch: int = 0, start: int = 0) -> Iterator[PairBatch]:
        """The batches of an epoch, from number ``start`` on."""
        yield from self._prepared(self.batches(epoch)[start:])

    def chosen(self, numbers: list[int]) -> Iterator[PairBatch]:
        """The batches with these numbers of the first epoch."""
        batches = self.batches(0)
        yield from self._prepared([batches[number] for number in numbers])

    def _prepared(self, batches: list[Array]) -> Iterator[PairBatch]:
        if self.store.divides_nodes and self.num_graphs == 1:
            # Every epoch is this one batch, and the encoding of one large graph takes longer than a step.
            if self._only_batch is None:
                self._only_batch = self._prepare(self.indices)
            yield from (self._only_batch for _ in batches)
            return
        if self.num_workers == 0:
            yield from (self._prepare(members) for members in batches)
            return
        yield from DataLoader(
            _Batches(self.store, batches, self.spec, self.split),
            batch_size=None,
            num_workers=min(self.num_workers, len(batches)) or 0,
            pin_memory=self.pin_memory,
            worker_init_fn=_one_thread,
        )

    def _prepare(self, members: Array) -> PairBatch:
        batch = PairBatch.from_store(self.store, members, self.spec, self.split)
        return batch.pin_memory() if self.pin_memory else batch

    def __iter__(self) -> Iterator[PairBatch]:
        return self.epoch(0)

    def __len__(self) -> int:
        return len(self.batches(0))


class _Batches(Dataset[PairBatch]):
    """The batches of one epoch by number, for worker processes."""

    def __init__(self, store: GraphStore, batches: list[Array], spec: BatchSpec, split: str | None) -> None:
        self.store, self.batches, self.spec, self.split = store, batches, spec, split

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, number: int) -> PairBatch:
        return PairBatch.from_store(self.store, self.batches[number], self.spec, self.split)


def _one_thread(worker: int) -> None:
    torch.set_num_threads(1)
