"""What a step of a system costs in time and memory: ``python -m grit.studies.race.probe JSON``, a process of its own.

A fresh process holds nothing of the systems before it, and where the system ends it because the memory is exhausted, the race
goes on with the next one.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import mean, median
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch import nn

from grit.batches.pair_batch import PairBatch
from grit.batches.sampling import epoch_order
from grit.errors import GritError
from grit.graphs.chunk import Array
from grit.graphs.store import GraphStore
from grit.learning.task import Task
from grit.memory import keep_freed_memory
from grit.recipe.builder import build_model, build_optimizer, training_statistics
from grit.recipe.config import Recipe
from grit.recipe.load import parse_recipe
from grit.recipe.plugins import load_installed_plugins
from grit.studies.runtime.peak_memory import forget_peak, status_megabytes
from grit.studies.stand_ins import stand_in_store
from grit.studies.study_data import Sizes, first_graphs
from grit.training.train import make_fabric

T = TypeVar("T")


class ProbeRequest(NamedTuple):
    """What is measured; plain JSON.

    Attributes:
        recipe: All of it.
        store: Folder of the graphs; None for the stand-in of the data set.
        sizes: Graphs of train, val and test, at most; None for all.
        rounds: Batches that are timed.
        threads: That torch uses.
        device: ``auto``, ``cpu``, ``cuda``.
    """

    recipe: dict[str, Any]
    store: str | None
    sizes: Sizes | None
    rounds: int
    threads: int
    device: str


class ProbeResult(NamedTuple):
    """What was measured; plain JSON. All times are seconds, of a batch as large as in training.

    Attributes:
        make: A batch from the store with its encoding, of graphs that were seen before.
        make_first: The same the first time, when structures such as rings are computed, which are then kept.
        step: Forward, backward, optimizer.
        evaluate: Forward alone.
        batches: Of the train, val and test split.
        megabytes: By which the process grew, from before the model was built to the peak, which has a step with the largest
            graphs in it; on a GPU what torch allocated there; None where the system does not tell.
        num_parameters: Of the model.
    """

    make: float
    make_first: float
    step: float
    evaluate: float
    batches: tuple[int, int, int]
    megabytes: float | None
    num_parameters: int

    @property
    def once(self) -> float:
        """Seconds for what is computed once and kept, over all graphs."""
        return max(0.0, self.make_first - self.make) * sum(self.batches)

    @property
    def epoch(self) -> float:
        """Seconds of an epoch and its validation."""
        train, val, _ = self.batches
        return train * (self.make + self.step) + val * (self.make + self.evaluate)

    def epochs_within(self, seconds: float) -> int:
        """How many epochs fit, at least one; what is computed once is counted."""
        train, val, _ = self.batches
        first = max(0.0, self.make_first - self.make) * (train + val)
        return max(1, int((seconds - first) / self.epoch))


def measure_apart(request: ProbeRequest) -> ProbeResult:
    """`measure` in a fresh process."""
    done = subprocess.run(
        [sys.executable, "-m", "grit.studies.race.probe", json.dumps(request._asdict())],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode < 0:
        raise GritError(
            f"the system ended the process that tried some steps (signal {-done.returncode}): probably out of memory."
        )
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise GritError(f"some steps that were tried failed: {last[0]}")
    return as_probe(json.loads(done.stdout.splitlines()[-1]))


def as_probe(tree: Any) -> ProbeResult:
    """A probe from plain JSON."""
    found = ProbeResult(*tree)
    return found._replace(batches=(found.batches[0], found.batches[1], found.batches[2]))


def measure(request: ProbeRequest) -> ProbeResult:
    """Take some training steps and say what they cost."""
    torch.set_num_threads(request.threads)
    keep_freed_memory()  # as training does
    recipe = parse_recipe(request.recipe, where="the recipe of the race")
    store = _store(recipe, request)
    device = make_fabric(recipe.train.precision, request.device).device
    forget_peak()
    before = status_megabytes("VmRSS")
    trial = _Trial(recipe, store, device)
    trial.take(trial.members[0])  # the first step is slower
    taken = [trial.take(members) for members in trial.members[1 : 1 + request.rounds]]
    trial.take(trial.largest())
    make_first, make, step, evaluate = zip(*taken, strict=True)
    if device.type == "cuda":
        megabytes: float | None = torch.cuda.max_memory_allocated(device) / 2**20
    else:
        peak = status_megabytes("VmHWM")
        megabytes = None if before is None or peak is None else peak - before
    size = recipe.train.batch_size
    train, val, test = (-(-int(store.split(split).size) // size) for split in ("train", "val", "test"))
    return ProbeResult(
        # What is computed once differs from graph to graph, and all of it counts; other outliers are the machine's.
        make=median(make),
        make_first=mean(make_first),
        step=median(step),
        evaluate=median(evaluate),
        batches=(train, val, test),
        megabytes=megabytes,
        num_parameters=sum(parameter.numel() for parameter in trial.network.parameters()),
    )


def _store(recipe: Recipe, request: ProbeRequest) -> GraphStore:
    if request.store is None:
        assert request.sizes is not None
        return stand_in_store(recipe.dataset, request.sizes)
    return first_graphs(GraphStore.open(request.store), request.sizes)


class _Trial:
    """A model with its optimizer, and batches to try it on."""

    def __init__(self, recipe: Recipe, store: GraphStore, device: torch.device) -> None:
        self.recipe, self.store, self.device = recipe, store, device
        self.spec, self.config = recipe.batch_spec(), recipe.train
        self.task = Task.fitted(recipe.task(store.task), store.targets(store.split("train"), "train"))
        statistics = training_statistics(recipe, store)
        self.network: nn.Module = build_model(recipe, store.schema, statistics=statistics).to(device)
        self.optimizer = build_optimizer(self.network, self.config)
        graphs = store.split("train")
        order = graphs[epoch_order(graphs.size, 0, 0)]
        size = self.config.batch_size
        whole = max(1, order.size // size)
        self.members = [order[b * size : (b + 1) * size] for b in range(whole)]
        if len(self.members) == 1:
            self.members *= 2

    def largest(self) -> Array:
        """As many training graphs as a batch has, the largest."""
        graphs = self.store.split("train")
        order = np.argsort(-self.store.nodes_per_graph(graphs), kind="stable")
        return graphs[order[: self.config.batch_size]]

    def take(self, members: Array) -> tuple[float, float, float, float]:
        """Seconds of a batch the first time, of it again, of a training step, and of a forward pass in evaluation."""
        first, _ = self._timed(lambda: self._batch(members))
        again, batch = self._timed(lambda: self._batch(members))
        self.network.train()
        step, _ = self._timed(lambda: self._step(batch))
        self.network.eval()
        with torch.no_grad():
            evaluate, _ = self._timed(lambda: self.network(batch))
        return first, again, step, evaluate

    def _batch(self, members: Array) -> PairBatch:
        return PairBatch.from_store(self.store, members, self.spec, "train").to(self.device)

    def _step(self, batch: PairBatch) -> None:
        assert batch.y is not None
        total, weight = self.task.loss_terms(self.network(batch), batch.y)
        (total / weight).backward()  # type: ignore[no-untyped-call]
        if self.config.clip_norm is not None:
            nn.utils.clip_grad_norm_(self.network.parameters(), self.config.clip_norm)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def _timed(self, work: Callable[[], T]) -> tuple[float, T]:
        started = time.perf_counter()
        result = work()
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return time.perf_counter() - started, result


if __name__ == "__main__":
    load_installed_plugins()
    found = measure(ProbeRequest(**json.loads(sys.argv[1])))
    sys.stdout.write("\n" + json.dumps(found) + "\n")
