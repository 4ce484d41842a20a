"""A short part of ``make fuzz``, always the same; and the runner itself, which must see what goes wrong."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

from grit.errors import GritError
from tests.fuzz import runner
from tests.fuzz.kinds import KINDS
from tests.fuzz.runner import Failure, Job, attempt, keep, kept, make, plan, run


def test_a_few_inputs_of_every_kind(tmp_path):
    command = [sys.executable, "-m", "tests.fuzz", "--inputs", "300", "--seed", "0", "--failures", str(tmp_path)]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(kind in done.stdout for kind in KINDS)
    assert "0 failed (seed 0)" in done.stdout


def test_a_kind_has_inputs_that_depend_on_seed_and_number_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("GRIT_FUZZ_SCENE", str(tmp_path))
    assert make(Job("smiles", 3), 5) == make(Job("smiles", 3), 5)
    assert len({repr(make(Job("recipes", number), seed)) for number in range(5) for seed in range(5)}) > 20


def test_the_plan_shares_inputs_among_kinds():
    jobs = plan(20_000, [])
    assert abs(len(jobs) - 20_000) < 20
    assert {job.kind for job in jobs} == set(KINDS)
    assert {job.kind for job in plan(10, ["tables"])} == {"tables"}


def misbehave(value, folder):
    """One way of going wrong for each number."""
    match value:
        case 1:
            raise GritError("no.")
        case 2:
            raise KeyError("x")
        case 3:
            os.kill(os.getpid(), signal.SIGKILL)
        case 4:
            time.sleep(1000)
        case 5:
            (folder / ".x.part").touch()
        case 6:
            raise AssertionError("a wrong number")
        case 7:
            bytearray(2 * runner.EXTRA_MEMORY)
        case 8:
            raise GritError("x" * 20_000)


def test_the_runner_sees_what_goes_wrong(tmp_path, monkeypatch):
    module = SimpleNamespace(make_input=lambda rng: int(rng.random() * 0), try_it=misbehave)
    monkeypatch.setitem(runner.KINDS, "bad", (module, 1))
    monkeypatch.setattr(runner, "make", lambda job, seed: job.number)
    monkeypatch.setattr(runner, "SECONDS", 10)
    monkeypatch.setenv("GRIT_FUZZ_SCENE", str(tmp_path))
    jobs = [Job("bad", number) for number in range(10)]
    found = {job.number: outcome.strip().splitlines()[-1] for job, outcome in run(jobs, 0, 2)}
    assert found == {
        0: "accepted",
        1: "refused",
        2: "KeyError: 'x'",
        3: "the process ended with -9",
        4: "no end after 10 s",
        5: "left behind: ['.x.part']",
        6: "AssertionError: a wrong number",
        7: "MemoryError",
        8: "a message of 20000 characters",
        9: "accepted",
    }


def test_an_input_that_failed_can_be_repeated(tmp_path, monkeypatch):
    value = {"content": b"\xff\0", "text": "\udcff", "steps": [("bytes", 1)]}
    path = keep(Failure(Job("smiles", 7), value, "why"), tmp_path / "failures", 3)
    assert kept(path) == ("smiles", value)
    monkeypatch.setenv("GRIT_FUZZ_SCENE", str(tmp_path))
    monkeypatch.setitem(runner.KINDS, "bad", (SimpleNamespace(try_it=misbehave), 1))
    assert attempt("bad", 2).endswith("KeyError: 'x'\n")
