"""The models of the runtime table, and one training step of each, as the runtime study and its memory probe run them."""

import time
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from grit import kernels
from grit.batches.pair_batch import PairBatch
from grit.batches.spec import BatchSpec
from grit.datasets import DATASETS
from grit.encodings import encoding_kind
from grit.graphs.store import GraphStore
from grit.kernels.backend import choice
from grit.learning.task import Task
from grit.recipe.builder import build_model, build_optimizer
from grit.recipe.config import Recipe
from grit.recipe.load import load_recipe


class Contestant(NamedTuple):
    """One model.

    Attributes:
        title: As the table shows it.
        base: Its recipe for ZINC.
        data: Entry of `DATASETS` for whose features it is built.
        kernels: ``plain`` for the form without compiled code; None for what the user has chosen.
        paper: Name of its row in `PAPER`.
    """

    title: str
    base: str = "zinc"
    data: str = "zinc"
    kernels: str | None = None
    paper: str = "GRIT"

    @property
    def recipe(self) -> Recipe:
        """What it is built and trained by."""
        return load_recipe(self.base)


class Paper(NamedTuple):
    """A column of the paper's table: encoding of the whole data set, memory, and an epoch."""

    encoding_seconds: float
    megabytes: int
    seconds_per_epoch: float


PAPER = {
    "SAN": Paper(10, 2291, 57.9),
    "GPS": Paper(11, 1101, 24.3),
    "GRIT": Paper(11, 1865, 29.4),
}

# SAN and GPS have as many atom types as GraphGPS provides for, 28, those of all of ZINC.
CONTESTANTS = {
    "san": Contestant("SAN", "zinc-san", data="zinc-full", paper="SAN"),
    "gps": Contestant("GPS", "zinc-gps", data="zinc-full", paper="GPS"),
    "grit": Contestant("GRIT"),
    "grit-plain": Contestant("GRIT, plain kernels", kernels="plain"),
}


class Runner:
    """A contestant with its weights and its optimizer, ready to train.

    Args:
        contestant: Which one.
        store: Graphs with the features of ZINC.
    """

    def __init__(self, contestant: Contestant, store: GraphStore) -> None:
        self.contestant, self.store = contestant, store
        self.recipe = contestant.recipe
        self.task = Task(store.task)
        self.network: nn.Module = build_model(self.recipe, DATASETS[contestant.data].schema).train()
        self.optimizer = build_optimizer(self.network, self.recipe.train)

    @property
    def num_parameters(self) -> int:
        """Trainable numbers."""
        return sum(parameter.numel() for parameter in self.network.parameters())

    def step(self, graphs: list[int]) -> float:
        """One training step, from the store to the new weights: its seconds."""
        with kernels.use(self.contestant.kernels or choice()):
            started = time.perf_counter()
            batch = self._batch(graphs)
            assert batch.y is not None
            total, weight = self.task.loss_terms(self.network(batch), batch.y)
            (total / weight).backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
            return time.perf_counter() - started

    def encode(self, graphs: list[int]) -> float:
        """The encoding alone: its seconds."""
        batch = PairBatch.from_store(self.store, graphs, BatchSpec(1, "none", self.recipe.model.pairs))
        with kernels.use(self.contestant.kernels or choice()):
            started = time.perf_counter()
            kind = encoding_kind(self.recipe.encoding.name)
            kind.compute(batch.graphs, batch.pairs, self.recipe.encoding.walk_steps, torch.float32)
            return time.perf_counter() - started

    def _batch(self, graphs: list[int]) -> PairBatch:
        return PairBatch.from_store(self.store, graphs, self.recipe.batch_spec())


def batches(store: GraphStore, count: int, batch_size: int) -> list[list[int]]:
    """Lists of training graphs, in order, from the beginning again where they end."""
    members = store.split("train")
    return [members[np.arange(b * batch_size, (b + 1) * batch_size) % members.size].tolist() for b in range(count)]
