"""The folder of a run: everything needed to understand, resume, evaluate and use it.

config.yaml        the complete recipe           metrics.jsonl   one line per epoch
data.json          what it was trained on        result.json     the final result
environment.json   versions, commit, threads     checkpoints/    last, previous-last and best
init.json          the weights that it began with, where these are of another run

Loggers (`grit.training.loggers`) may add files of their own, such as metrics.csv. Nothing here reads them.

A process that trains holds the lock ``.lock``, which the system releases when the process ends, however it ends. Every
file but metrics.jsonl is written whole or not at all; metrics.jsonl is written again from the checkpoint on resuming. So a
kill at any moment leaves one of these states:

state      what is there                                              train begins    train --resume
new        nothing, or data.json, environment.json, init.json alone   yes             begins, with the weights of init.json
begun      config.yaml, which is written last; no checkpoint yet      yes, anew       begins anew, in the same way
trained    a checkpoint, ``last`` or ``previous-last``                refused         goes on from it
finished   result.json                                                refused         gives the result
foreign    something else, or a file of such a name that no run       refused         refused
           wrote, and neither checkpoint nor result

A new or begun folder is written over, so every file in it must be known, and its content must be that of a run.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from filelock import FileLock, Timeout
from pydantic import (
    BaseModel,
    ConfigDict,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)

from grit.errors import GritError
from grit.files.ordinary_file import check_ordinary
from grit.files.whole_file import ENDING, write_text
from grit.graphs.chunk import NODE_SPLITS, Array
from grit.graphs.schema import GraphInputs, GraphSchema, TaskSpec, without_unused
from grit.graphs.store import GraphStore
from grit.learning.task import Task
from grit.recipe.bounded_yaml import read_yaml
from grit.recipe.config import Recipe
from grit.recipe.load import load_saved_recipe, recipe_yaml
from grit.training.checkpoint import previous
from grit.training.environment import environment

LOCK = ".lock"
INIT = "init.json"
RunState = Literal["new", "begun", "trained", "finished", "foreign"]


class RunData(BaseModel):
    """What a run was trained on, and what a predictor must know of it.

    Attributes:
        name: Of the data set.
        store: Its folder; None if it was in memory.
        graphs: Features and targets.
        task: What is predicted.
        mean: Of the training targets, where the task standardises.
        scale: Their deviation.
        molecules: How a SMILES becomes a graph, an entry of `FEATURISERS`; None if the data are not molecules.
        split_sizes: Graphs per split, or nodes where nodes of one graph are in different splits.
        split_checksums: SHA-256 of each split's graph numbers, or node numbers.
        checksum: SHA-256 over the checksums of all arrays, where the data is on disk.
        statistics: Of the training set, where the model asks for some.
        inputs: What the numbers of each graph are, where graphs carry such and somebody said.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    store: str | None
    graphs: GraphSchema
    task: TaskSpec
    mean: tuple[float, ...]
    scale: tuple[float, ...]
    molecules: str | None
    split_sizes: dict[str, int]
    split_checksums: dict[str, str]
    checksum: str | None = None
    statistics: dict[str, Any] = {}
    inputs: GraphInputs | None = None

    @model_serializer(mode="wrap")
    def _as_before(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return without_unused(dump(self), "inputs")


class _Result(BaseModel):
    """What the readers of ``result.json`` rely on."""

    metric: str
    best_epoch: int | None
    epochs: int
    num_parameters: int
    seconds: float
    val: dict[str, float] = {}
    test: dict[str, float] = {}

    @model_validator(mode="after")
    def _has_its_metric(self) -> Self:
        if any(self.metric not in found for found in (self.val, self.test) if found):
            raise ValueError(f"the metric {self.metric!r} is not among those that were measured")
        return self


class RunFolder:
    """Access to the files of a run; see the head of this file."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def state(self) -> RunState:
        """What the folder holds; see the head of this file."""
        try:
            if not self.path.exists():
                return "new"
            if not self.path.is_dir():
                raise GritError(f"the run folder {str(self.path)!r} is a file. Name another with --run.")
            if (self.path / "result.json").is_file():
                return "finished"
            if self.last.is_file() or previous(self.last).is_file():
                return "trained"
            if self._not_of_a_run():
                return "foreign"
            return "begun" if (self.path / "config.yaml").is_file() else "new"
        except OSError as error:
            raise GritError(f"cannot use the run folder {str(self.path)!r}: {error}") from None

    def has_work(self, *, resume: bool) -> bool:
        """Whether there is training in it to go on with; an error if it may not be used.

        Args:
            resume: Whether the user asked to go on with what is there.
        """
        state = self.state()
        if state == "foreign":
            refuse_others(self.path, self._not_of_a_run())
        if state in ("trained", "finished") and not resume:
            raise GritError(
                f"the run folder {str(self.path)!r} exists already. Go on with it by --resume, or name another with --run."
            )
        return state in ("trained", "finished")

    def _not_of_a_run(self) -> list[str]:
        """What `begin` must not touch in a folder without checkpoints: names that no run has, and files that no run wrote."""
        known = {
            "environment.json": self._has_environment,
            "data.json": self._has_data,
            "config.yaml": self._has_recipe,
            INIT: self._has_init,
        }
        names = {path.name for path in self.path.iterdir()}
        wrong = {name for name, is_ours in known.items() if name in names and not is_ours()}
        if "config.yaml" in names and "data.json" not in names:
            wrong.add("config.yaml")
        is_begun = "config.yaml" in names - wrong
        # Beside the files of a run that begun, loggers may have left theirs, which `begin` does not touch.
        wrong |= set() if is_begun else _others(names, {*known, "checkpoints"})
        if "checkpoints" in names:
            inside = {path.name for path in self.checkpoints.iterdir()}
            allowed = {self.last.name, previous(self.last).name, self.best.name}
            is_ours = not _others(inside, allowed) and (is_begun or self.best.name not in inside)
            wrong |= set() if is_ours else {"checkpoints"}
        return sorted(wrong)

    def _has_environment(self) -> bool:
        try:
            content = json.loads(check_ordinary(self.path / "environment.json").read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return False
        return isinstance(content, dict) and content.keys() >= {"packages", "python", "command"}

    def _has_init(self) -> bool:
        try:
            content = json.loads(check_ordinary(self.path / INIT).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return False
        return isinstance(content, dict) and content.keys() >= {"source", "file", "sha256"}

    def _has_data(self) -> bool:
        try:
            self.data()
        except GritError:
            return False
        return True

    def _has_recipe(self) -> bool:
        """Whether config.yaml has all parts of a recipe. Their values are not read: that may need plugins."""
        try:
            tree = read_yaml(self.path / "config.yaml", "recipe")
        except GritError:
            return False
        return isinstance(tree, dict) and tree.keys() >= {"dataset", "encoding", "model", "train"}

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other processes from changing the folder, which is made if it is not there."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            # Half a second, because `grit runs` may be looking whether the folder is held.
            lock = FileLock(self.path / LOCK, timeout=0.5, thread_local=False)
            lock.acquire()
        except Timeout:
            raise GritError(
                f"another process is working in the run folder {str(self.path)!r}. Wait until it ends, "
                "or name another with --run."
            ) from None
        except OSError as error:
            raise GritError(f"cannot use the run folder {str(self.path)!r}: {error}") from None
        try:
            yield
        finally:
            lock.release()

    def begin(self, recipe: Recipe, data: RunData, init: str | None = None) -> None:
        """Make it the folder of a new run; what a run without a checkpoint left there goes.

        Args:
            recipe: What is trained.
            data: On which data.
            init: The text of ``init.json``, where the run begins with weights of another.
        """
        try:
            self.checkpoints.mkdir(parents=True, exist_ok=True)
            for left in (self.metrics, self.best, *([self.path / INIT] if init is None else [])):
                left.unlink(missing_ok=True)
        except OSError as error:
            raise GritError(f"cannot use the run folder {str(self.path)!r}: {error}") from None
        self.write("environment.json", json.dumps(environment(), indent=1) + "\n")
        self.write("data.json", data.model_dump_json(indent=1) + "\n")
        if init is not None:
            self.write(INIT, init)
        self.write("config.yaml", recipe_yaml(recipe))  # last: where it is, the others are

    @classmethod
    def open(cls, path: str | Path) -> "RunFolder":
        """An existing run folder."""
        folder = cls(path)
        if not (folder.path / "config.yaml").is_file():
            inside = folder.path / "model"
            if (inside / "config.yaml").is_file():
                raise GritError(f"{str(folder.path)!r} is the folder of a fit; the run is {str(inside)!r}.")
            if (folder.path / "study.json").is_file():
                raise GritError(
                    f"{str(folder.path)!r} is the folder of grit tune, which keeps no model. Train one with grit fit ... "
                    f"--preset {folder.path / 'recipe.yaml'}."
                )
            why = "it has no config.yaml" if folder.path.exists() else "there is nothing of that name"
            raise GritError(f"{str(folder.path)!r} is not a run folder: {why}.")
        return folder

    @property
    def checkpoints(self) -> Path:
        """Folder of the checkpoints."""
        return self.path / "checkpoints"

    @property
    def last(self) -> Path:
        """The newest checkpoint, from which a run is resumed."""
        return self.checkpoints / "last.safetensors"

    @property
    def best(self) -> Path:
        """The checkpoint of the best epoch by validation, which is what a run is used for."""
        return self.checkpoints / "best.safetensors"

    @property
    def metrics(self) -> Path:
        """One line of JSON per epoch."""
        return self.path / "metrics.jsonl"

    def recipe(self) -> Recipe:
        """The recipe that it was started with."""
        return load_saved_recipe(self.path / "config.yaml")

    def data(self) -> RunData:
        """What it was trained on."""
        try:
            return RunData.model_validate_json(check_ordinary(self.path / "data.json").read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, ValidationError) as error:
            raise GritError(f"{str(self.path / 'data.json')!r} cannot be read: {error}") from None

    def check_described(self, state: Mapping[str, Any]) -> None:
        """Raise if config.yaml or data.json no longer say what a checkpoint's predictions rest on.

        Args:
            state: Of the checkpoint; older ones do not hold all of it.
        """
        for name, key, now, parts in (
            ("config.yaml", "recipe", self.recipe(), ("model", "encoding")),
            ("data.json", "data", self.data(), ("graphs", "task", "mean", "scale", "molecules", "inputs")),
        ):
            if key in state:
                trained = type(now).model_validate(state[key])
                changed = [part for part in parts if getattr(trained, part) != getattr(now, part)]
                if changed:
                    raise GritError(
                        f"{str(self.path / name)!r} was changed or damaged after training ({', '.join(changed)}). "
                        "The weights fit only what they were trained with: put the file back as it was."
                    )

    def result(self) -> dict[str, Any] | None:
        """The final result; None if the run is not finished."""
        path = self.path / "result.json"
        if not path.is_file():
            return None
        try:
            content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            _Result.model_validate(content)
        except (ValueError, RecursionError) as error:
            raise GritError(f"{str(path)!r} cannot be read: {error}") from None
        return content

    def history(self) -> list[dict[str, Any]]:
        """The metrics of each epoch so far."""
        if not self.metrics.is_file():
            return []
        lines = self.metrics.read_bytes().splitlines(keepends=True)
        whole = [line for line in lines if line.endswith(b"\n")]  # another process may be writing the last one
        try:
            return [json.loads(line) for line in whole]
        except ValueError as error:
            raise GritError(f"{str(self.metrics)!r} cannot be read: {error}") from None

    def write(self, name: str, text: str) -> None:
        """Write one of the files, whole or not at all."""
        write_text(self.path / name, text)


def refuse_others(path: Path, names: Sequence[str]) -> None:
    """Raise if a folder that is wanted for a run holds something else.

    Args:
        path: The folder.
        names: What is in it and not of a run.
    """
    if names:
        raise GritError(
            f"the run folder {str(path)!r} exists already and holds other files ({', '.join(names[:3])}). "
            "Name another with --run."
        )


def _others(names: set[str], known: set[str]) -> set[str]:
    """Those that are neither known, nor the lock, nor what a killed writer of a known file left."""
    return {
        name
        for name in names - known - {LOCK}
        if not (name.endswith(ENDING) and any(name.startswith(f".{each}.") for each in known))
    }


def describe_data(store: GraphStore, task: Task, statistics: Mapping[str, Any]) -> RunData:
    """`RunData` of a store."""
    return RunData(
        name=store.name,
        store=None if store.path is None else str(store.path.resolve()),
        graphs=store.schema,
        task=task.spec,
        mean=tuple(task.mean.tolist()),
        scale=tuple(task.scale.tolist()),
        molecules=store.manifest.molecules,
        split_sizes={name: store.split_size(name) for name in store.splits},
        split_checksums=_split_checksums(store),
        checksum=_checksum_of_all(store),
        statistics=dict(statistics),
        inputs=store.manifest.inputs,
    )


def _split_checksums(store: GraphStore) -> dict[str, str]:
    if store.divides_nodes:
        node_split = store.array("node_split")
        return {name: _checksum(np.flatnonzero(node_split == k)) for k, name in enumerate(NODE_SPLITS, start=1)}
    arrays = store.manifest.arrays
    return {
        name: arrays[f"split_{name}"].sha256 if f"split_{name}" in arrays else _checksum(members)
        for name, members in store.splits.items()
    }


def _checksum(members: Array) -> str:
    return hashlib.sha256(np.ascontiguousarray(members, dtype="<i8").tobytes()).hexdigest()


def _checksum_of_all(store: GraphStore) -> str | None:
    arrays = store.manifest.arrays
    if not arrays:
        return None
    return hashlib.sha256("".join(f"{name} {arrays[name].sha256}\n" for name in sorted(arrays)).encode()).hexdigest()
