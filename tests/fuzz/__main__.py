"""``python -m tests.fuzz [--inputs N] [--seed S] [--only KIND ...]``, or ``--repeat FILE`` for one that failed."""

import argparse
import os
import tempfile
import time
from collections import Counter
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is there: workers are forked

from tests.fuzz.kinds import KINDS
from tests.fuzz.runner import Failure, attempt, keep, kept, make, make_scene, plan, run


def main() -> int:
    """Try inputs, count what came of them, and keep those that failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--inputs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--only", nargs="*", choices=list(KINDS), default=[])
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--failures", type=Path, default=Path(tempfile.gettempdir()) / "grit-fuzz")
    parser.add_argument("--repeat", type=Path, help="an input that was kept")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="grit-fuzz-") as folder:
        make_scene(Path(folder))
        if asked.repeat is not None:
            outcome = attempt(*kept(asked.repeat))
            print(outcome)
            return int(outcome not in ("accepted", "refused"))
        return _many(asked)


def _many(asked: argparse.Namespace) -> int:
    print(f"seed {asked.seed}", flush=True)
    begun = time.monotonic()
    counts: Counter[tuple[str, str]] = Counter()
    failures: list[Failure] = []
    for job, outcome in run(plan(asked.inputs, asked.only), asked.seed, asked.processes):
        if outcome not in ("accepted", "refused"):
            failure = Failure(job, make(job, asked.seed), outcome)
            failures.append(failure)
            path = keep(failure, asked.failures, asked.seed)
            print(f"FAILED {job.kind} {job.number}: {outcome.strip().splitlines()[-1][:200]}")
            print(f"  again: python -m tests.fuzz --repeat {path}", flush=True)
            outcome = "failed"
        counts[job.kind, outcome] += 1
    for kind in dict.fromkeys(kind for kind, _ in counts):
        print(f"{kind:12}", ", ".join(f"{counts[kind, what]:,} {what}" for what in ("accepted", "refused", "failed")))
    total = sum(counts.values())
    print(f"{total:,} inputs in {time.monotonic() - begun:.0f} s, {len(failures)} failed (seed {asked.seed})")
    return int(bool(failures))


raise SystemExit(main())
