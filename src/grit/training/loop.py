"""The training loop: from a recipe and a store to a run folder with a trained model.

Everything that a run depends on is either in the recipe or in the checkpoint (weights, optimizer, position in the shuffled
epoch, random numbers, best so far), so that a run that was interrupted anywhere, and resumed, ends with the same bits.
"""

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from math import isfinite
from typing import Any

import torch
import torch.distributed as dist
from lightning_fabric import Fabric
from torch import Tensor, nn

from grit.batches.loader import Loader
from grit.batches.pair_batch import PairBatch
from grit.errors import GritError, Interrupted
from grit.graphs.store import GraphStore
from grit.learning.metrics import METRICS
from grit.learning.task import Task
from grit.nn.graph_features import fit_features
from grit.recipe.builder import build_model, build_optimizer
from grit.recipe.config import Recipe
from grit.training.checkpoint import load_weights, read_checkpoint, read_last, rng_tensors, set_rng, write_checkpoint
from grit.training.evaluation import evaluate
from grit.training.run_folder import INIT, RunData, RunFolder


@dataclass
class RunProgress:
    """Where a run stands; saved with every checkpoint.

    Attributes:
        epoch: Being worked on, from 0.
        batch: Batches of it that are done.
        loss_sum: Numerator of the epoch's training loss so far.
        loss_weight: Its denominator.
        best_value: Best validation result so far.
        best_epoch: Its epoch; of equally good ones the latest, because training went on.
        improved_epoch: The first that reached it, for patience.
        seconds: Spent in training and evaluation.
        cut_at: The share of the last epoch that was trained when the time was up; 1 for all of it.
    """

    epoch: int = 0
    batch: int = 0
    loss_sum: float = 0.0
    loss_weight: float = 0.0
    best_value: float | None = None
    best_epoch: int | None = None
    improved_epoch: int | None = None
    seconds: float = 0.0
    cut_at: float = 1.0


@dataclass(frozen=True)
class Event:
    """What a watcher is told: after a step, or (with ``metrics``) after an epoch; of model ``member``, from 0, of ``members``."""

    epoch: int
    epochs: int
    batch: int
    batches: int
    graphs: int
    loss: float
    metrics: dict[str, float] = field(default_factory=dict)
    member: int = 0
    members: int = 1


class _Carried:
    """A batch on its way through Fabric, which would otherwise take it apart to change its number types."""

    def __init__(self, batch: PairBatch) -> None:
        self.batch = batch


class _Unwrapped(nn.Module):
    """The network behind `_Carried`."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, carried: _Carried) -> Tensor:
        predicted: Tensor = self.network(carried.batch)
        return predicted


class TrainingLoop:
    """One run.

    Args:
        recipe: What to do.
        store: The data.
        folder: Where everything is kept.
        fabric: Device, precision and processes, launched.
        task: With its mean and scale.
        data: What the run is trained on.
        checkpoint_seconds: How often the run is saved, at least, besides its ends.
        num_workers: Processes that prepare batches.
        compile_model: Whether the model goes through ``torch.compile``.
        watch: Told of every step and epoch.
        log: Given the line of ``metrics.jsonl`` of every epoch, once a checkpoint holds it.
        initial: Weights to begin with, by name; the others are those of the seed.
    """

    def __init__(
        self,
        recipe: Recipe,
        store: GraphStore,
        folder: RunFolder,
        fabric: Fabric,
        task: Task,
        data: RunData,
        *,
        checkpoint_seconds: float = 60.0,
        num_workers: int = 0,
        compile_model: bool = False,
        watch: Callable[[Event], None] | None = None,
        log: Callable[[dict[str, Any]], None] | None = None,
        initial: Mapping[str, Tensor] | None = None,
    ) -> None:
        self.recipe, self.store, self.folder, self.fabric, self.task = recipe, store, folder, fabric, task
        self.config = recipe.train
        # From memory: the files may be edited while the run goes on, which does not change what is trained.
        self.described = {"recipe": recipe.model_dump(mode="json"), "data": data.model_dump(mode="json")}
        self.checkpoint_seconds = checkpoint_seconds
        self.watch, self.log = watch, log
        self.num_workers = num_workers
        self.network = build_model(recipe, store.schema, statistics=data.statistics)
        fit_features(self.network, store)
        if initial is not None:
            load_weights(self.network, {**self.network.state_dict(), **initial}, str(folder.path / INIT))
        prepared: nn.Module = torch.compile(self.network, dynamic=True) if compile_model else self.network  # type: ignore[assignment]
        self.model, self.optimizer = fabric.setup(_Unwrapped(prepared), build_optimizer(self.network, self.config))
        self.train_batches = self.loader("train", shuffle=True, share=(fabric.global_rank, fabric.world_size))
        self.val_batches = self.loader("val")
        self.progress = RunProgress()
        self.history: list[dict[str, Any]] = []
        self._stop = False

    def loader(self, split: str, *, shuffle: bool = False, share: tuple[int, int] = (0, 1)) -> Loader:
        """Batches of a split as the recipe wants them."""
        return Loader(
            self.store,
            self.store.split(split),
            self.recipe.batch_spec(torch.float64 if self.config.precision == "64-true" else torch.float32),
            batch_size=self.config.batch_size,
            shuffle=shuffle,
            seed=self.config.seed,
            max_pairs=self.config.max_pairs,
            min_nodes=2 if shuffle else 1,
            share=share,
            num_workers=self.num_workers,
            pin_memory=self.fabric.device.type == "cuda",
            split=split,
        )

    def run(self) -> dict[str, Any]:
        """Train to the end and give the result."""
        with self._stoppable():
            while not self._is_done():
                self.train_epoch()
                self.validate()
        return self._finish()

    def _is_done(self) -> bool:
        # In the middle of an epoch the time may be up, but what was trained has to be validated first.
        return self.progress.epoch >= self.config.epochs or (
            self.progress.batch == 0 and self.ended_early() is not None
        )

    def ended_early(self) -> str | None:
        """Why training ends before its last epoch; None if nothing says so."""
        p, config = self.progress, self.config
        if (
            config.patience is not None
            and p.improved_epoch is not None
            and p.epoch - p.improved_epoch > config.patience
        ):
            return f"no better on validation for {config.patience} epochs (train.patience)"
        if config.has_fallen(self._costs()):
            return "plateaus have brought the learning rate to its end (train.plateau.min_lr)"
        return f"its time of {config.max_seconds:g} s is up (train.max_seconds)" if self._time_is_up() else None

    def _time_is_up(self) -> bool:
        limit = self.config.max_seconds
        # The first process decides: the clocks of several differ.
        return limit is not None and bool(self.fabric.broadcast(self.progress.seconds >= limit))

    def _costs(self) -> list[float]:
        """The validation metric of the epochs so far, turned so that lower is better."""
        sign = -1.0 if METRICS[self.task.spec.metric].higher_is_better else 1.0
        return [sign * line["val"][self.task.spec.metric] for line in self.history]

    def train_epoch(self) -> None:
        """Train on what is left of the epoch, or until the time is up; saved now and then."""
        p = self.progress
        rate = self.config.learning_rate(p.epoch, self._costs())
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.model.train()
        total = len(self.train_batches.batches(p.epoch))
        before = saved = time.perf_counter()
        for batch in self.train_batches.epoch(p.epoch, start=p.batch):
            ends_step = (p.batch + 1) % self.config.accumulate == 0 or p.batch + 1 == total
            loss = self.step(batch.to(self.fabric.device), ends_step)
            p.batch += 1
            now = time.perf_counter()
            p.seconds, before = p.seconds + now - before, now
            self._tell(Event(p.epoch, self.config.epochs, p.batch, total, len(batch), loss))
            if ends_step and self._should_stop():
                self.save()
                raise Interrupted(f"interrupted in epoch {p.epoch + 1}, batch {p.batch}; everything is saved.")
            if ends_step and self._time_is_up():
                break
            if ends_step and now - saved > self.checkpoint_seconds:
                self.save()
                saved = time.perf_counter()
        p.cut_at = p.batch / total

    def step(self, batch: PairBatch, ends_step: bool) -> float:
        """Forward, backward and, if the step ends here, clip and update."""
        with self.fabric.no_backward_sync(self.model, enabled=not ends_step):
            predicted = self.model(_Carried(batch))
            assert batch.y is not None
            total, weight = self.task.loss_terms(predicted, batch.y, self._over_all, batch.graphs.graph_weight)
            loss_sum, loss_weight = self._over_all(torch.stack([total.detach().double(), weight.double()])).tolist()
            if not isfinite(loss_sum):
                raise self._not_finite()
            # The mean of the processes' gradients is taken, so each share is scaled to make that the whole batch's gradient.
            share = self.fabric.world_size / loss_weight / self.config.accumulate
            self.fabric.backward(total * share)
        if ends_step:
            if self.config.clip_norm is not None:
                self.fabric.clip_gradients(
                    self.model, self.optimizer, max_norm=self.config.clip_norm, error_if_nonfinite=False
                )
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
        self.progress.loss_sum += loss_sum
        self.progress.loss_weight += loss_weight
        return float(loss_sum / loss_weight)

    def validate(self) -> None:
        """The end of an epoch: measure, remember the best, write a line, save."""
        p, started = self.progress, time.perf_counter()
        metrics = evaluate(self.network, self.task, self.val_batches, self.fabric).metrics
        value = metrics[self.task.spec.metric]
        improved = self.task.is_better(value, p.best_value)
        if improved:
            p.best_value, p.improved_epoch = value, p.epoch
        if improved or value == p.best_value:
            p.best_epoch = p.epoch
            if self.fabric.is_global_zero:
                state = {"epoch": p.epoch, "metrics": metrics, **self.described}
                write_checkpoint(self.folder.best, self._weights(), state)
        train_loss = p.loss_sum / p.loss_weight
        rate = self.config.learning_rate(p.epoch, self._costs())
        line = {"epoch": p.epoch, "lr": rate, "train_loss": train_loss, "val": metrics}
        done = len(self.train_batches.batches(p.epoch))
        epoch = p.epoch
        p.epoch, p.batch, p.loss_sum, p.loss_weight = p.epoch + 1, 0, 0.0, 0.0
        p.seconds += time.perf_counter() - started
        self._append({**line, "seconds": p.seconds})
        self.save()
        if self.log is not None and self.fabric.is_global_zero:
            self.log(self.history[-1])
        self._tell(Event(epoch, self.config.epochs, done, done, 0, train_loss, metrics))

    def _finish(self) -> dict[str, Any]:
        """Test at the best epoch, chosen on validation only; where its checkpoint is gone, at the last one."""
        p = self.progress
        tested = p.epoch - 1 if p.epoch else None
        if self.folder.best.exists():
            best = read_checkpoint(self.folder.best)
            load_weights(self.network, best.under("model."), str(self.folder.best))
            tested = best.state["epoch"]
        result: dict[str, Any] = {
            "dataset": self.store.name,
            "metric": self.task.spec.metric,
            "best_epoch": tested,
            "epochs": p.epoch,
            "seed": self.config.seed,
            "num_parameters": sum(parameter.numel() for parameter in self.network.parameters()),
            "seconds": p.seconds,
        }
        if p.cut_at < 1:
            result["cut_at"] = p.cut_at
        for split in ("val", "test"):
            if split in self.store.splits and self.store.split(split).size:
                result[split] = evaluate(self.network, self.task, self.loader(split), self.fabric).metrics
        if self.fabric.is_global_zero:
            self.folder.write("result.json", json.dumps(result, indent=1) + "\n")
        return result

    def save(self) -> None:
        """Write the checkpoint from which the run goes on."""
        rngs = [rng_tensors()]
        if self.fabric.world_size > 1:
            rngs = [{} for _ in range(self.fabric.world_size)]
            dist.all_gather_object(rngs, rng_tensors())
        if self.fabric.is_global_zero:
            optimizer = self.optimizer.state_dict()
            tensors = self._weights()
            for rank, states in enumerate(rngs):
                tensors |= {f"rng.{rank}.{name}": value for name, value in states.items()}
            for number, state in optimizer["state"].items():
                tensors |= {f"optimizer.{number}.{name}": value for name, value in state.items()}
            state = {
                "progress": asdict(self.progress),
                "history": self.history,
                "groups": optimizer["param_groups"],
                "processes": self.fabric.world_size,
                **self.described,
            }
            write_checkpoint(self.folder.last, tensors, state, keep_previous=True)
        self.fabric.barrier()

    def resume(self) -> str | None:
        """Go back to where the last checkpoint was written; a sentence if an older one had to be used."""
        checkpoint, note = read_last(self.folder.last)
        if checkpoint.state["processes"] != self.fabric.world_size:
            raise GritError(
                f"the run was begun with {checkpoint.state['processes']} processes and cannot go on exactly with "
                f"{self.fabric.world_size}; start as many."
            )
        if Recipe.model_validate(checkpoint.state["recipe"]) != self.recipe:
            raise GritError(
                f"the checkpoint {str(self.folder.last)!r} belongs to another configuration than config.yaml."
            )
        load_weights(self.network, checkpoint.under("model."), str(self.folder.last))
        states: dict[int, dict[str, Tensor]] = {}
        for name, value in checkpoint.under("optimizer.").items():
            number, _, what = name.partition(".")
            states.setdefault(int(number), {})[what] = value
        # JSON knows no tuples, and torch's optimizers have no lists.
        groups = [
            {
                name: tuple(value) if isinstance(value, list) and name != "params" else value
                for name, value in group.items()
            }
            for group in checkpoint.state["groups"]
        ]
        self.optimizer.load_state_dict({"state": states, "param_groups": groups})
        set_rng(checkpoint.under(f"rng.{self.fabric.global_rank}."))
        progress = {**checkpoint.state["progress"]}
        progress.pop("metrics_bytes", None)  # of checkpoints that did not hold the history yet
        self.progress = RunProgress(**progress)
        self.history = checkpoint.state.get("history") or self.folder.history()[: self.progress.epoch]
        if self.fabric.is_global_zero:
            self.folder.write("metrics.jsonl", "".join(json.dumps(line) + "\n" for line in self.history))
        return note

    def _weights(self) -> dict[str, Tensor]:
        return {f"model.{name}": value for name, value in self.network.state_dict().items()}

    def _append(self, line: dict[str, Any]) -> None:
        self.history.append(line)
        if self.fabric.is_global_zero:
            try:
                with self.folder.metrics.open("ab") as file:
                    file.write((json.dumps(line) + "\n").encode())
            except OSError as error:
                raise GritError(f"cannot write {str(self.folder.metrics)!r}: {error}") from None

    def _over_all(self, value: Tensor) -> Tensor:
        """Sum over the processes that share a batch."""
        if self.fabric.world_size > 1:
            value = value.clone()
            dist.all_reduce(value)
        return value

    def _not_finite(self) -> GritError:
        p = self.progress
        return GritError(
            f"the loss became infinite or undefined (NaN) in epoch {p.epoch + 1}, batch {p.batch + 1}. "
            f"{'The last good checkpoint is kept. ' if self.folder.last.exists() else ''}"
            "Check the data for extreme values; lower train.lr, or set train.clip_norm or model.clamp if they are off."
        )

    def _tell(self, event: Event) -> None:
        if self.watch is not None and self.fabric.is_global_zero:
            self.watch(event)

    def _should_stop(self) -> bool:
        if self.fabric.world_size == 1:
            return self._stop
        return bool(self._over_all(torch.tensor(float(self._stop), device=self.fabric.device)).item())

    @contextmanager
    def _stoppable(self) -> Iterator[None]:
        """Ctrl-C and SIGTERM end training after the step under way; a second Ctrl-C at once."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def stop(number: int, frame: Any) -> None:
            if self._stop:
                raise KeyboardInterrupt
            self._stop = True

        before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
