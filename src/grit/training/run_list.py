"""The run folders below a folder, each in a few figures. Nothing is written, and a broken folder is listed with the reason."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from math import isnan
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock, Timeout

from grit.errors import GritError
from grit.learning.metrics import METRICS
from grit.recipe.config import Recipe
from grit.training.run_folder import LOCK, RunFolder

ListedState = Literal["finished", "trained", "running", "begun", "broken"]
SORTS = ("name", "metric", "time")
_SIGNS = {"config.yaml", "result.json", "metrics.jsonl", "checkpoints"}  # a run folder has one of them


@dataclass(frozen=True)
class RunSummary:
    """One run.

    Attributes:
        path: Of its folder.
        state: ``finished``; ``running`` (a process holds it); ``trained`` (stopped, and has a checkpoint); ``begun``; ``broken``.
        changed: When it last wrote something, in seconds since 1970.
        dataset: What it was trained on.
        model: Name and size.
        metric: By which its best epoch is chosen.
        best_epoch: Counted from 1.
        epochs: That are done.
        val: Metric on validation at the best epoch, of a run that is not finished at the best so far.
        test: On the test split; of finished runs.
        num_parameters: Of finished runs.
        seconds: Spent in training.
        reason: Why it is broken.
    """

    path: str
    state: ListedState
    changed: float
    dataset: str | None = None
    model: str | None = None
    metric: str | None = None
    best_epoch: int | None = None
    epochs: int | None = None
    val: float | None = None
    test: float | None = None
    num_parameters: int | None = None
    seconds: float | None = None
    reason: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


def find_run_folders(folders: Sequence[Path]) -> list[Path]:
    """The run folders at or below some folders, each once, in order of their names."""
    found: dict[Path, Path] = {}
    for folder in folders:
        if not folder.is_dir():
            raise GritError(
                f"there is no folder {str(folder)!r}. Name folders that hold runs; `grit train` makes them in runs."
            )
        for path in _below(folder):
            found.setdefault(path.resolve(), path)
    return sorted(found.values())


def list_runs(folders: Sequence[Path], sort: str = "name") -> list[RunSummary]:
    """A summary of every run below some folders.

    Args:
        folders: Where to look.
        sort: ``name``; ``metric``: the best on validation first, per data set and metric; ``time``: the newest first.
    """
    if sort not in SORTS:
        raise GritError(f"--sort {sort}: there are {', '.join(SORTS)}.")
    runs = [summary_of(path) for path in find_run_folders(folders)]
    if sort == "time":
        return sorted(runs, key=lambda run: -run.changed)
    return sorted(runs, key=_by_metric) if sort == "metric" else runs


def summary_of(path: Path) -> RunSummary:
    """A run in a few figures, whatever state its folder is in."""
    changed = 0.0
    try:
        os.listdir(path)  # says why, if it cannot be read
        changed = max(path.joinpath(name).stat().st_mtime for name in _SIGNS if path.joinpath(name).exists())
        return _summary(RunFolder(path), changed)
    except (GritError, OSError, ValueError, LookupError, TypeError) as error:
        reason = " ".join(str(error).split())
        return RunSummary(str(path), "broken", changed, reason=reason or type(error).__name__)


def model_name(recipe: Recipe) -> str:
    """The model of a recipe with its size, where it has one."""
    name, options = recipe.model.name.upper(), recipe.model.options()
    if not {"num_layers", "hidden_dim"} <= options.keys():
        return name
    return f"{name} ({options['num_layers']} layers of {options['hidden_dim']})"


def _summary(folder: RunFolder, changed: float) -> RunSummary:
    state = folder.state()
    if not (folder.path / "config.yaml").is_file():
        raise GritError("it has no config.yaml")
    recipe, data = folder.recipe(), folder.data()
    result, history = folder.result(), folder.history()
    metric = recipe.task(data.task).metric if result is None else result["metric"]
    known: dict[str, Any] = {"dataset": data.name, "model": model_name(recipe), "metric": metric}
    if result is not None:
        known |= {key: result[key] for key in ("epochs", "num_parameters", "seconds")}
        known |= {split: _number(result[split][metric]) for split in ("val", "test") if split in result}
        best = result["best_epoch"]
        return RunSummary(str(folder.path), "finished", changed, best_epoch=None if best is None else best + 1, **known)
    if history:
        measured = [line for line in reversed(history) if _number(line["val"][metric]) is not None]
        if measured:
            better = max if METRICS[metric].higher_is_better else min
            best_line = better(measured, key=lambda line: float(line["val"][metric]))  # of equals the latest
            known |= {"best_epoch": best_line["epoch"] + 1, "val": best_line["val"][metric]}
        known |= {"epochs": len(history), "seconds": history[-1]["seconds"]}
    shown: ListedState = "running" if _is_held(folder) else "trained" if state == "trained" else "begun"
    return RunSummary(str(folder.path), shown, changed, **known)


def _is_held(folder: RunFolder) -> bool:
    """Whether a process trains in the folder. The lock is there for the blink of an eye; `RunFolder.held` waits for longer."""
    lock = folder.path / LOCK
    if not lock.exists():
        return False
    try:
        with FileLock(lock, timeout=0, thread_local=False):
            return False
    except Timeout:
        return True
    except OSError:  # somebody else's folder, or a file system without locks
        return False


def _below(folder: Path) -> Iterator[Path]:
    unreadable: list[OSError] = []
    for path, subfolders, files in os.walk(folder, onerror=unreadable.append):
        if _SIGNS & {*files, *subfolders}:
            subfolders.clear()  # whatever is in a run belongs to it
            yield Path(path)
        subfolders.sort()
    yield from (Path(error.filename) for error in unreadable)


def _by_metric(run: RunSummary) -> tuple[Any, ...]:
    if run.val is None or run.metric is None:
        return (True, "", "", 0.0, run.path)
    sign = -1.0 if METRICS[run.metric].higher_is_better else 1.0
    return (False, run.dataset, run.metric, sign * run.val, run.path)


def _number(value: Any) -> float | None:
    """A metric, or None where it is not defined."""
    return None if isnan(value) else float(value)
