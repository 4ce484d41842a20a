"""Where the figures of a run go besides its folder: the table `LOGGERS`, ``grit train --log NAME``.

An entry is a class without parameters. Its constructor imports what it needs, so that a missing package is an error before any
work. Then it is called as `Logger` says. One of your own is a line in a plugin: ``grit.LOGGERS["mine"] = MyLogger``.
"""

import csv
import io
import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from grit.errors import GritError, shown
from grit.files.whole_file import write_text
from grit.recipe.config import Recipe
from grit.recipe.plugins import guard
from grit.training.checkpoint import rng_tensors, set_rng
from grit.training.run_folder import RunFolder


class Logger(Protocol):
    """What a run tells a logger. All is called in the first process of a run only."""

    def begin(self, recipe: Recipe, folder: RunFolder) -> None:
        """The run begins, or goes on. `epoch` is then called for every epoch from the first, those of before included.

        So a logger either writes its record anew, or leaves out the epochs that it has.
        """

    def epoch(self, metrics: Mapping[str, float]) -> None:
        """An epoch is done and saved.

        Args:
            metrics: ``epoch`` (from 0), ``lr``, ``train_loss``, ``val/mae`` and the like, ``seconds`` since the run began.
        """

    def end(self, result: Mapping[str, Any] | None) -> None:
        """The process is done with the run.

        Args:
            result: The content of ``result.json``; None if training was stopped or failed.
        """


class CsvLogger:
    """``metrics.csv`` in the run folder: a line per epoch."""

    def begin(self, recipe: Recipe, folder: RunFolder) -> None:
        """Begin the table anew."""
        self.path = folder.path / "metrics.csv"
        self.columns: list[str] = []
        write_text(self.path, "")

    def epoch(self, metrics: Mapping[str, float]) -> None:
        """Add a line, below the names of the columns if it is the first."""
        lines: list[Sequence[Any]] = []
        if not self.columns:
            self.columns = list(metrics)
            lines.append(self.columns)
        lines.append([metrics[name] for name in self.columns])
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(lines)
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(text.getvalue())
        except OSError as error:
            raise GritError(f"cannot write {str(self.path)!r}: {error}") from None

    def end(self, result: Mapping[str, Any] | None) -> None:
        """Nothing: the table is complete after every epoch."""


class TensorboardLogger:
    """Scalars in the folder ``tensorboard`` of the run: ``tensorboard --logdir runs`` shows all runs."""

    def __init__(self) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.make: Callable[[str], Any] = SummaryWriter

    def begin(self, recipe: Recipe, folder: RunFolder) -> None:
        """Begin the record anew."""
        place = folder.path / "tensorboard"
        try:
            for left in place.glob("events.out.tfevents.*"):
                left.unlink()
            self.writer = self.make(str(place))
        except OSError as error:
            raise GritError(f"cannot write {str(place)!r}: {error}") from None

    def epoch(self, metrics: Mapping[str, float]) -> None:
        """Add the figures of an epoch, counted from 1 as on the screen."""
        for name, value in metrics.items():
            if name != "epoch":
                self.writer.add_scalar(name, value, int(metrics["epoch"]) + 1)
        self.writer.flush()

    def end(self, result: Mapping[str, Any] | None) -> None:
        """Add the metrics of the best epoch, and close."""
        if result is not None:
            best = {f"best {split}": result.get(split, {}) for split in ("val", "test")}
            for name, value in _flat(best):
                self.writer.add_scalar(name, value, (result["best_epoch"] or 0) + 1)
        self.writer.close()


class WandbLogger:
    """A run of Weights & Biases, kept in the folder ``wandb`` of the run.

    Nothing is sent unless ``WANDB_MODE`` is set, for example to ``online``; ``wandb sync`` sends it later. The project is
    ``grit`` unless ``WANDB_PROJECT`` names another. ``wandb.json`` in the run folder remembers the id and the epochs logged.
    """

    def __init__(self) -> None:
        if "WANDB_MODE" not in os.environ:
            os.environ.setdefault("WANDB_ERROR_REPORTING", "false")  # offline is offline
        import wandb

        self.wandb: Any = wandb

    def begin(self, recipe: Recipe, folder: RunFolder) -> None:
        """Begin a run, or go on with the one of this folder."""
        self.folder = folder
        self.known = self._remembered()
        self.run: Any = None
        if self.known["finished"]:
            return
        wandb, mode = self.wandb, os.environ.get("WANDB_MODE", "offline")
        try:
            self.run = wandb.init(
                project=os.environ.get("WANDB_PROJECT", "grit"),
                dir=str(folder.path),
                name=folder.path.name,
                id=self.known["id"],
                resume=None if mode == "offline" else "allow",  # offline, equal ids are one run once they are sent
                config=recipe.model_dump(mode="json"),
                mode=mode,
                settings=wandb.Settings(console="off", silent=True),
            )
        except wandb.Error as error:
            raise self._failed(error) from None
        self._remember()

    def epoch(self, metrics: Mapping[str, float]) -> None:
        """Log an epoch, unless an earlier process has."""
        if metrics["epoch"] < self.known["epochs"]:
            return
        try:
            self.run.log(dict(metrics), step=int(metrics["epoch"]))
        except self.wandb.Error as error:
            raise self._failed(error) from None
        self.known["epochs"] = int(metrics["epoch"]) + 1
        self._remember()

    def end(self, result: Mapping[str, Any] | None) -> None:
        """Write the summary and finish."""
        if self.run is None:
            return
        try:
            if result is not None:
                self.run.summary.update(dict(result))
            self.run.finish(exit_code=0 if result is not None else 1)
        except self.wandb.Error as error:
            raise self._failed(error) from None
        self.known["finished"] = result is not None
        self._remember()

    def _remembered(self) -> dict[str, Any]:
        path = self.folder.path / "wandb.json"
        try:
            known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"epochs": 0}
            if known["epochs"] == 0:  # the folder may have been begun with other settings since
                return {"id": secrets.token_hex(4), "epochs": 0, "finished": False}
            return {"id": str(known["id"]), "epochs": int(known["epochs"]), "finished": bool(known["finished"])}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise GritError(f"{str(path)!r} cannot be read: {error}. Remove it to begin a new record.") from None

    def _remember(self) -> None:
        self.folder.write("wandb.json", json.dumps(self.known) + "\n")

    def _failed(self, error: Exception) -> GritError:
        return GritError(f"Weights & Biases: {error}. Leave out --log wandb, or set WANDB_MODE=offline.")


LOGGERS: dict[str, Callable[[], Logger]] = {"csv": CsvLogger, "tensorboard": TensorboardLogger, "wandb": WandbLogger}
guard("LOGGERS", LOGGERS)


class RunLog:
    """The loggers of a run.

    Args:
        names: Entries of `LOGGERS`.

    Attributes:
        result: Of the run, once there is one.
    """

    def __init__(self, names: Sequence[str]) -> None:
        unknown = [name for name in names if name not in LOGGERS]
        if unknown:
            raise GritError(f"there is no logger {shown(unknown[0])}; there are {', '.join(LOGGERS)}.")
        self.loggers = [LOGGERS[name]() for name in dict.fromkeys(names)]
        self.result: Mapping[str, Any] | None = None

    def epoch(self, line: Mapping[str, Any]) -> None:
        """Pass on a line of ``metrics.jsonl``."""
        metrics = dict(_flat(line))
        if self.loggers:
            with _same_random_numbers():
                for logger in self.loggers:
                    logger.epoch(metrics)

    @contextmanager
    def of_run(self, recipe: Recipe, folder: RunFolder, history: Sequence[Mapping[str, Any]]) -> Iterator[None]:
        """Log while the block runs, after the epochs that there are already; `result` is what it ended with."""
        begun: list[Logger] = []
        try:
            with _same_random_numbers():
                for logger in self.loggers:
                    logger.begin(recipe, folder)
                    begun.append(logger)
            for line in history:
                self.epoch(line)
            yield
        finally:
            for logger in begun:
                logger.end(self.result)

    def of_finished(self, recipe: Recipe, folder: RunFolder, result: Mapping[str, Any]) -> None:
        """Log a run that is finished already."""
        self.result = result
        if self.loggers:
            with self.of_run(recipe, folder, folder.history()):
                pass


@contextmanager
def _same_random_numbers() -> Iterator[None]:
    """Whatever a logger draws must not change the run."""
    before = rng_tensors()
    try:
        yield
    finally:
        set_rng(before)


def _flat(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    """``{"val": {"mae": 1}}`` -> ``val/mae``, 1."""
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}/")
        else:
            yield prefix + key, value
