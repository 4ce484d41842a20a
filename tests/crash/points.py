"""Kill a process, and see whether the work can be gone on with.

``python -m tests.crash.points SCENARIO --every 1`` kills it before each of its file operations, one after the other. It must
run with ``operations.c`` loaded before the C library, which `test_crash_points` arranges. ``--random N`` kills it N times,
each time twice in a row, at random moments. It prints how many file operations and kills there were, and what went wrong.

The scenario is run in a forked child, which dies. Then, in another child, what a user would do next: the same command, with
--resume where the message asks for that. What is then on disk must equal that of an undisturbed run.
"""

import argparse
import ctypes
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from grit.datasets import from_csv, load
from grit.errors import GritError
from grit.training.checkpoint import read_checkpoint
from grit.training.run_folder import RunFolder
from grit.training.train import RunOptions, train
from tests.training.small import SMALL, small_recipe, small_store

OPTIONS = RunOptions(device="cpu", checkpoint_seconds=0)
SMILES = ["C" * carbons + end for carbons in range(1, 9) for end in ("O", "N", "Cl", "c1ccccc1", "C(=O)O")]


class Scenario(NamedTuple):
    """Something that is killed.

    Attributes:
        prepare: Makes what must be there before, in a new folder.
        act: The work, in that folder; called again after the kill.
        result: What must be the same in the end.
    """

    prepare: Callable[[Path], None]
    act: Callable[[Path], None]
    result: Callable[[Path], Any]


def prepare_store(folder: Path) -> None:
    small_store(out=folder.parent / "store")


def act_train(folder: Path) -> None:
    store = load(str(folder.parent / "store"))
    recipe = small_recipe("train.epochs=2", "train.batch_size=20")
    _as_a_user(lambda resume: train(recipe, folder / "run", store=store, resume=resume, options=OPTIONS))


def prepare_init(folder: Path) -> None:
    prepare_store(folder)
    store = load(str(folder.parent / "store"))
    train(small_recipe("train.epochs=1"), folder.parent / "source", store=store, options=OPTIONS)


def act_init(folder: Path) -> None:
    """Begin with the weights of another run, and log; who resumes does not name the weights again."""
    store = load(str(folder.parent / "store"))
    recipe = small_recipe("train.epochs=2", "train.batch_size=20", "train.seed=1")
    options = OPTIONS._replace(log=("csv",))

    def command(resume: bool) -> None:
        init = None if resume else folder.parent / "source"
        train(recipe, folder / "run", store=store, resume=resume, init=init, options=options)

    _as_a_user(command)


def result_of_init(folder: Path) -> Any:
    logged = [line.rpartition(",")[0] for line in (folder / "run" / "metrics.csv").read_text().splitlines()]
    taken = json.loads((folder / "run" / "init.json").read_text())["taken"]
    return result_of_run(folder / "run"), logged, taken


def prepare_table(folder: Path) -> None:
    rows = "".join(f"{smiles},{len(smiles)}.5\n" for smiles in SMILES)
    (folder.parent / "table.csv").write_text(f"smiles,y\n{rows}")


def act_fit(folder: Path) -> None:
    from grit.datasets.own.molecule_tables import MoleculeTable
    from grit.training.fit import fit

    _as_a_user(
        lambda resume: fit(
            MoleculeTable(folder.parent / "table.csv", targets="y"),
            folder / "run",
            preset="fast",
            overrides=[*SMALL, "train.epochs=1"],
            resume=resume,
            with_forest=False,
            options=OPTIONS,
        )
    )


def act_build(folder: Path) -> None:
    from_csv(
        folder.parent / "table.csv", targets=["y"], split="random", out=folder / "store", processes=1, overwrite=True
    )


def prepare_rebuild(folder: Path) -> None:
    prepare_table(folder)
    from_csv(folder.parent / "table.csv", targets=["y"], split="random", seed=5, out=folder / "store", processes=1)


def act_rebuild(folder: Path) -> None:
    """Replace a store, of which one can be read at every moment: the old or the new one."""
    load(str(folder / "store"))
    act_build(folder)


def _as_a_user(command: Callable[[bool], Any]) -> None:
    try:
        command(False)
    except GritError as error:
        if "--resume" not in str(error):
            raise
        command(True)


def result_of_run(run: Path) -> Any:
    folder = RunFolder(run)
    last = read_checkpoint(folder.last)
    best = read_checkpoint(folder.best)
    tensors = {f"last {name}": value for name, value in last.tensors.items()}
    tensors |= {f"best {name}": value for name, value in best.tensors.items()}
    del tensors[
        "last rng.0.python"
    ]  # libraries draw from it when they are imported, which a resumed process does again
    progress = {**last.state["progress"], "seconds": 0}
    history = [{**line, "seconds": 0} for line in folder.history()]
    return tensors, progress, history, {**(folder.result() or {}), "seconds": 0}, folder.recipe()


def result_of_store(path: Path) -> Any:
    store = load(str(path))
    arrays = {each.name: np.load(each) for each in sorted(path.glob("*.npy"))}
    return {name: torch.from_numpy(value.astype(np.float64)) for name, value in arrays.items()}, len(store)


SCENARIOS = {
    "train": Scenario(prepare_store, act_train, lambda folder: result_of_run(folder / "run")),
    "init": Scenario(prepare_init, act_init, result_of_init),
    "fit": Scenario(
        prepare_table,
        act_fit,
        lambda folder: (result_of_run(folder / "run" / "model")[:4], result_of_store(folder / "run" / "data")),
    ),
    "build": Scenario(prepare_table, act_build, lambda folder: result_of_store(folder / "store")),
    "rebuild": Scenario(prepare_rebuild, act_rebuild, lambda folder: result_of_store(folder / "store")),
}


def in_a_child(action: Callable[..., None], *arguments: Any, seconds: float | None = None) -> int:
    """Run in a forked process, and kill it after some seconds if asked; its wait status. What it raises goes to stderr."""
    child = os.fork()
    if child == 0:
        try:
            action(*arguments)
        except BaseException:  # a forked child must not go on with its parent's code
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def leftovers(folder: Path) -> list[str]:
    """Temporary files and folders that nobody will remove."""
    found = (str(path.relative_to(folder)) for path in folder.rglob("*"))
    return sorted(name for name in found if name.endswith(".part") or ".building-" in name)


def same(a: Any, b: Any) -> bool:
    """Equality, tensors to the bit."""
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, tuple | list):
        return isinstance(b, tuple | list) and len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


class Bench:
    """A scenario, what it gives undisturbed, and attempts to disturb it."""

    def __init__(self, scenario: Scenario, scratch: Path, operations: ctypes.CDLL | None) -> None:
        self.scenario, self.scratch, self.operations = scenario, scratch, operations
        folder = self.prepare("undisturbed")
        started = time.monotonic()
        if in_a_child(self.attempt, folder):
            sys.exit("the undisturbed run failed")
        self.seconds = time.monotonic() - started
        self.count = int((scratch / "count").read_text())
        self.wanted = scenario.result(folder)

    def prepare(self, name: str) -> Path:
        place = self.scratch / name / "work"
        place.mkdir(parents=True)
        if in_a_child(self.scenario.prepare, place):
            sys.exit("the preparation failed")
        return place

    def attempt(self, folder: Path, fatal: int = 0) -> None:
        """Carry out the scenario; with ``fatal``, up to that file operation."""
        if self.operations is not None:
            self.operations.crash_below(str(folder).encode(), ctypes.c_long(fatal))
        self.scenario.act(folder)
        (self.scratch / "count").write_text(str(self.operations.crash_count() if self.operations else 0))

    def killed_before(self, fatal: int) -> str | None:
        """Kill before a file operation, go on; what is wrong then."""
        folder = self.prepare(f"killed-{fatal}")
        status = in_a_child(self.attempt, folder, fatal)
        if not (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL):
            return f"operation {fatal}: was not killed (status {status})"
        return self.go_on(folder, f"operation {fatal}")

    def killed_after(self, number: int, times: tuple[float, float]) -> str | None:
        """Kill twice after random parts of the time that the scenario takes, go on; what is wrong then."""
        folder = self.prepare(f"random-{number}")
        for part in times:
            in_a_child(self.attempt, folder, seconds=part * self.seconds)
        return self.go_on(folder, f"kill {number} ({times[0]:.2f}, {times[1]:.2f})")

    def go_on(self, folder: Path, what: str) -> str | None:
        try:
            if in_a_child(self.attempt, folder):
                return f"{what}: cannot be gone on with"
            if not same(self.scenario.result(folder), self.wanted):
                return f"{what}: another result"
            left = leftovers(folder)
            return f"{what}: left {left}" if left else None
        finally:
            shutil.rmtree(folder.parent)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("scenario", choices=SCENARIOS)
    parser.add_argument("--every", type=int, default=0, help="Kill before each k-th file operation.")
    parser.add_argument("--random", type=int, default=0, help="Kill so many times after random times.")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    operations = ctypes.CDLL(None) if arguments.every else None
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(SCENARIOS[arguments.scenario], Path(scratch), operations)
        tried = list(range(1, bench.count + 1, arguments.every)) if arguments.every else []
        problems = [bench.killed_before(fatal) for fatal in tried]
        rng = random.Random(arguments.seed)
        problems += [bench.killed_after(number, (rng.random(), rng.random())) for number in range(arguments.random)]
    found = {"operations": bench.count, "tried": len(problems), "problems": [each for each in problems if each]}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
