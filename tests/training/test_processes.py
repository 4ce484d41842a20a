"""Several processes share a batch and give what one gives."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import grit
from grit.datasets import load
from grit.training.checkpoint import read_checkpoint
from grit.training.run_folder import RunFolder
from grit.training.train import train
from tests.training.small import small_recipe, small_store

PROGRAM = """
import os, signal, sys
import grit
assert grit.__file__ == os.environ["GRIT_UNDER_TEST"], grit.__file__
import numpy as np
from tests.training.small import *
from grit.datasets import load
from grit.training.train import RunOptions, train

def watch(event):
    print("loss", event.epoch, event.batch, repr(event.loss), flush=True)

# 3 epochs of 7 batches (6 of 8 and one of 2): 21 steps. A small step, because the square root makes training chaotic.
recipe = small_recipe("train.batch_size=8", "train.precision=64-true", "model.attention_dropout=0.0", "train.lr=1e-5")
options = RunOptions(device="cpu", checkpoint_seconds=0)
if len(sys.argv) > 3 and os.environ["RANK"] == "1":
    from grit.training.loop import TrainingLoop
    step = TrainingLoop.step
    def dying(self, batch, ends_step):
        if self.progress.epoch == 1 and self.progress.batch == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return step(self, batch, ends_step)
    TrainingLoop.step = dying
train(recipe, sys.argv[2], store=load(sys.argv[1]), resume=True, options=options, watch=watch)
"""

# Folders that may not be used; what each process is told.
REFUSED = """
import os, sys
from pathlib import Path
import grit
from tests.training.small import *
from grit.datasets import load
from grit.training.train import RunOptions, train

for name, resume in (("foreign", False), ("foreign/file", True), ("other", True)):
    try:
        train(small_recipe(), Path(sys.argv[2]) / name, store=load(sys.argv[1]), resume=resume, options=RunOptions("cpu"))
    except grit.GritError as error:
        (Path(sys.argv[2]) / f"{os.environ['RANK']} {name.replace('/', ' ')}").write_text(str(error))
"""


def run(tmp_path, name, processes, *extra, code=0, text=PROGRAM):
    program = tmp_path / "program.py"
    program.write_text(text)
    arguments = [str(program), str(tmp_path / "store"), str(tmp_path / name), *extra]
    command = [sys.executable, *arguments]
    if processes > 1:
        command = [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--standalone",
            "--nproc_per_node",
            str(processes),
            *arguments,
        ]
    paths = [str(Path(grit.__file__).parents[1]), str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(paths),
        "GRIT_UNDER_TEST": grit.__file__,
    }
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, env=environment, cwd=tmp_path)
    assert (done.returncode == 0) == (code == 0), done.stderr
    losses = [float(line.split()[3]) for line in done.stdout.splitlines() if line.startswith("loss")]
    return losses, done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("processes")
    small_store(out=path / "store")
    return path


@pytest.fixture(scope="module")
def alone(folder):
    return run(folder, "one", 1)[0]


def compare(folder, first, second):
    a, b = (read_checkpoint(RunFolder(folder / name).last).under("model.") for name in (first, second))
    assert a.keys() == b.keys()
    for name in a:
        torch.testing.assert_close(a[name], b[name], rtol=0, atol=1e-6)


def test_two_processes_are_one(folder, alone):
    losses, _ = run(folder, "two", 2)
    assert len(alone) == len(losses) == 24  # 21 steps and 3 epochs
    assert losses == pytest.approx(alone, abs=1e-6)
    compare(folder, "one", "two")
    one, two = RunFolder(folder / "one").result(), RunFolder(folder / "two").result()
    assert two["test"]["mae"] == pytest.approx(one["test"]["mae"], abs=1e-6)


def test_a_process_that_dies_ends_the_run_which_resumes(folder, alone):
    _, errors = run(folder, "dying", 2, "die", code=1)
    assert "Signal 9" in errors or "SIGKILL" in errors
    assert RunFolder(folder / "dying").result() is None
    run(folder, "dying", 2)
    compare(folder, "one", "dying")


def test_a_mistake_that_the_first_process_finds_is_told_by_all(folder):
    refused = folder / "refused"
    (refused / "foreign").mkdir(parents=True)
    (refused / "foreign" / "file").write_text("precious")
    train(small_recipe("train.epochs=1"), refused / "other", store=load(str(folder / "store")))
    run(folder, "refused", 2, text=REFUSED)
    for name, message in (
        ("foreign", "holds other files (file)"),
        ("foreign file", "is a file. Name another"),
        ("other", "begun with another configuration (train.epochs was 1, is now 3)"),
    ):
        first, second = ((refused / f"{rank} {name}").read_text() for rank in (0, 1))
        assert message in first
        assert first == second
