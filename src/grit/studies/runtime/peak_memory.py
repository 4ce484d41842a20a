"""How much memory training takes, measured in a process of its own: ``python -m grit.studies.runtime.peak_memory JSON``.

What the process holds at its peak, less what it held before the model was built: weights, optimizer, activations and
encodings are in it; the interpreter, the libraries and the data are not.
"""

import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import torch

from grit.errors import GritError
from grit.graphs.store import GraphStore
from grit.memory import keep_freed_memory, proc_bytes
from grit.studies.runtime.timed_models import CONTESTANTS, Runner, batches
from grit.studies.stand_ins import stand_in_store


class MemoryRequest(NamedTuple):
    """What is measured; plain JSON.

    Attributes:
        contestant: Entry of `CONTESTANTS`.
        store: Folder of the graphs; None for the stand-in of ZINC.
        graphs: Training graphs of the stand-in.
        batch_size: Graphs per step.
        steps: How many.
        threads: That torch uses.
    """

    contestant: str
    store: str | None
    graphs: int
    batch_size: int
    steps: int
    threads: int


def resident_growth(request: MemoryRequest) -> float | None:
    """Megabytes by which a fresh process grows over some training steps; None where the system does not tell."""
    done = subprocess.run(
        [sys.executable, "-m", "grit.studies.runtime.peak_memory", json.dumps(request._asdict())],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or [f"it ended with {done.returncode}"]
        raise GritError(f"the process that measures the memory of {request.contestant} failed: {last[0]}")
    megabytes: float | None = json.loads(done.stdout)
    return megabytes


def measure(request: MemoryRequest) -> float | None:
    """What the fresh process does."""
    torch.set_num_threads(request.threads)
    keep_freed_memory()  # as training does
    store = GraphStore.open(request.store) if request.store else stand_in_store("zinc", (request.graphs, 1, 1))
    forget_peak()
    before = status_megabytes("VmRSS")
    runner = Runner(CONTESTANTS[request.contestant], store)
    for batch in batches(store, request.steps, request.batch_size):
        runner.step(batch)
    peak = status_megabytes("VmHWM")
    return None if before is None or peak is None else peak - before


def forget_peak() -> None:
    """The peak counts from here; where that cannot be had, loading the libraries may have had a higher one."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def status_megabytes(name: str) -> float | None:
    """An entry of this process's status, on Linux."""
    found = proc_bytes("/proc/self/status", name)
    return None if found is None else found / 2**20


if __name__ == "__main__":
    sys.stdout.write(json.dumps(measure(MemoryRequest(**json.loads(sys.argv[1])))) + "\n")
