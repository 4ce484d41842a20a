"""Trying many inputs: workers that are forked once and watched, so that a crash or a hang is one finding and not the end."""

import ast
import json
import multiprocessing
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from grit.errors import GritError
from tests.fuzz import scene
from tests.fuzz.kinds import KINDS
from tests.fuzz.mutation import PLANTED

SECONDS = 60  # for one input; a busy machine takes its time
EXTRA_MEMORY = 3 << 30  # an input that takes more is a finding
_fork = multiprocessing.get_context("fork")


class Job(NamedTuple):
    """One input: its kind and number; with the seed they say what it is."""

    kind: str
    number: int


class Failure(NamedTuple):
    """An input that neither succeeded nor was refused."""

    job: Job
    value: Any
    what: str


def make(job: Job, seed: int) -> Any:
    """The input of a job."""
    return KINDS[job.kind][0].make_input(Random(f"{seed} {job.kind} {job.number}"))


def attempt(kind: str, value: Any) -> str:
    """Try an input in this process: ``accepted``, ``refused``, or what went wrong."""
    folder = Path(tempfile.mkdtemp(prefix="try-", dir=os.environ["GRIT_FUZZ_SCENE"]))
    try:
        outcome = _attempt(kind, value, folder)
        hidden = [path for path in folder.rglob(".*") if not path.name.endswith(PLANTED)]
        left = [
            str(path.relative_to(folder)) for path in hidden if path.name.endswith(".part") or ".building-" in path.name
        ]
        return f"left behind: {left}" if left else outcome
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _attempt(kind: str, value: Any, folder: Path) -> str:
    try:
        KINDS[kind][0].try_it(value, folder)
    except GritError as error:
        text = str(error)
        return "refused" if 0 < len(text) < 10_000 else f"a message of {len(text)} characters"
    except Exception:  # whatever it is, it is the finding
        return traceback.format_exc()
    return "accepted"


def _work(pipe: Connection, jobs: list[Job], seed: int) -> None:
    _limit_memory()
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for job in jobs:
        pipe.send((job, None))
        pipe.send((job, attempt(job.kind, make(job, seed))))
    pipe.close()


def _limit_memory() -> None:
    if sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + EXTRA_MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


class _Worker:
    """A process and what it has left to do."""

    def __init__(self, jobs: list[Job], seed: int) -> None:
        self.jobs, self.seed = jobs, seed
        self.pipe, theirs = _fork.Pipe(duplex=False)
        self.process = _fork.Process(target=_work, args=(theirs, jobs, seed))
        self.process.start()
        theirs.close()
        self.busy: Job | None = None
        self.since = time.monotonic()

    def after(self, job: Job) -> "_Worker | None":
        """Another process for what comes after a job."""
        rest = self.jobs[self.jobs.index(job) + 1 :]
        return _Worker(rest, self.seed) if rest else None


def run(jobs: list[Job], seed: int, processes: int) -> Iterator[tuple[Job, str]]:
    """Try all; yields what came of each: ``accepted``, ``refused``, or what went wrong."""
    workers = [_Worker(part, seed) for place in range(processes) if (part := jobs[place::processes])]
    while workers:
        ready = wait([worker.pipe for worker in workers], timeout=1)
        for worker in list(workers):
            ended = None
            if worker.pipe in ready:
                try:
                    job, outcome = worker.pipe.recv()
                    worker.busy, worker.since = job if outcome is None else None, time.monotonic()
                    if outcome is not None:
                        yield job, outcome
                    continue
                except EOFError:
                    worker.process.join()
                    ended = f"the process ended with {worker.process.exitcode}"
            elif worker.busy and time.monotonic() - worker.since > SECONDS:
                worker.process.kill()
                worker.process.join()
                ended = f"no end after {SECONDS} s"
            if ended is not None:
                workers.remove(worker)
                if worker.busy is not None:
                    yield worker.busy, ended
                    another = worker.after(worker.busy)
                    workers += [another] if another else []


def plan(inputs: int, only: list[str]) -> list[Job]:
    """So many inputs, shared among the kinds."""
    shares = {kind: share for kind, (_, share) in KINDS.items() if not only or kind in only}
    counts = {kind: max(1, round(inputs * share / sum(shares.values()))) for kind, share in shares.items()}
    jobs = [Job(kind, number) for kind, count in counts.items() for number in range(count)]
    Random(0).shuffle(jobs)  # so that slow kinds do not end up with one worker
    return jobs


def make_scene(folder: Path) -> None:
    """Make the scene in a process of its own: this one must have no threads, because it forks."""
    os.environ["GRIT_FUZZ_SCENE"] = str(folder)
    process = _fork.Process(target=scene.make, args=(folder,))
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit("the scene could not be made")


def keep(failure: Failure, folder: Path, seed: int) -> Path:
    """Save an input that failed."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{failure.job.kind}-{seed}-{failure.job.number}.json"
    record = {"kind": failure.job.kind, "value": repr(failure.value), "what": failure.what}
    path.write_text(json.dumps(record, indent=1))
    return path


def kept(path: Path) -> tuple[str, Any]:
    """Kind and value of a saved input."""
    record = json.loads(path.read_text())
    return record["kind"], ast.literal_eval(record["value"])
