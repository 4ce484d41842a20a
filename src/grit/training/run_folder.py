"""The folder of a run: everything needed to understand, resume, evaluate and use it.

config.yaml        the complete recipe           metrics.jsonl   one line per epoch
data.json          what it was trained on        result.json     the final result
environment.json   versions, commit, threads     checkpoints/    last, previous-last and best
"""

import json
import os
import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict, ValidationError

from grit.errors import GritError
from grit.graphs.schema import GraphSchema, TaskSpec
from grit.graphs.store import GraphStore
from grit.training.config import Recipe
from grit.training.recipe import load_recipe, recipe_yaml
from grit.whole_file import write_text


class RunData(BaseModel):
    """What a run was trained on, and what a predictor must know of it.

    Attributes:
        name: Of the data set.
        store: Its folder; None if it was in memory.
        graphs: Features and targets.
        task: What is predicted.
        mean: Of the training targets, where the task standardises.
        scale: Their deviation.
        molecules: How a SMILES becomes a graph, an entry of `FEATURISERS`; None if the data is no molecules.
        split_sizes: Graphs per split.
        split_checksums: SHA-256 of each split's graph numbers, where the data is on disk.
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


class RunFolder:
    """Access to the files of a run; see the head of this file."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @classmethod
    def create(cls, path: str | Path, recipe: Recipe, data: RunData) -> "RunFolder":
        """A new run folder; an error if there is one already."""
        folder = cls(path)
        if folder.path.exists() and any(folder.path.iterdir()):
            raise GritError(
                f"the run folder {str(folder.path)!r} exists already. Go on with it by --resume, or name another with --run."
            )
        try:
            folder.checkpoints.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise GritError(f"cannot create the run folder {str(folder.path)!r}: {error}") from None
        folder.write("config.yaml", recipe_yaml(recipe))
        folder.write("data.json", data.model_dump_json(indent=1) + "\n")
        folder.write("environment.json", json.dumps(environment(), indent=1) + "\n")
        return folder

    @classmethod
    def open(cls, path: str | Path) -> "RunFolder":
        """An existing run folder."""
        folder = cls(path)
        if not (folder.path / "config.yaml").is_file():
            inside = folder.path / "model"
            if (inside / "config.yaml").is_file():
                raise GritError(f"{str(folder.path)!r} is the folder of a fit; the run is {str(inside)!r}.")
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
        return load_recipe(self.path / "config.yaml")

    def data(self) -> RunData:
        """What it was trained on."""
        try:
            return RunData.model_validate_json((self.path / "data.json").read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, ValidationError) as error:
            raise GritError(f"{str(self.path / 'data.json')!r} cannot be read: {error}") from None

    def result(self) -> dict[str, Any] | None:
        """The final result; None if the run is not finished."""
        path = self.path / "result.json"
        if not path.is_file():
            return None
        try:
            content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise GritError(f"{str(path)!r} cannot be read: {error}") from None
        return content

    def history(self) -> list[dict[str, Any]]:
        """The metrics of each epoch so far."""
        if not self.metrics.is_file():
            return []
        return [json.loads(line) for line in self.metrics.read_text(encoding="utf-8").splitlines()]

    def write(self, name: str, text: str) -> None:
        """Write one of the files, whole or not at all."""
        write_text(self.path / name, text)


def describe_data(store: GraphStore, mean: tuple[float, ...], scale: tuple[float, ...]) -> RunData:
    """`RunData` of a store."""
    arrays = store.manifest.arrays
    return RunData(
        name=store.name,
        store=None if store.path is None else str(store.path.resolve()),
        graphs=store.schema,
        task=store.task,
        mean=mean,
        scale=scale,
        molecules=store.manifest.molecules,
        split_sizes={name: int(members.size) for name, members in store.splits.items()},
        split_checksums={name: arrays[f"split_{name}"].sha256 for name in store.splits if f"split_{name}" in arrays},
    )


def environment() -> dict[str, Any]:
    """Versions, commit, machine and command of this process."""
    packages = ("torch-grit", "torch", "torch-geometric", "numpy", "lightning-fabric", "safetensors", "rdkit")
    return {
        "packages": {name: _version(name) for name in packages},
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "commit": _commit(),
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _commit() -> str | None:
    """Commit of the checkout that grit is imported from, if it is one."""
    try:
        done = subprocess.run(
            ["git", "rev-parse", "HEAD"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None
