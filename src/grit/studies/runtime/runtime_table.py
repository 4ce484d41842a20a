"""The runtime table of the appendix: SAN, GPS and GRIT on ZINC, time and memory, as ratios.

All models take turns on the same batches in one process, so that whatever else the machine does falls on all of them.
``grit reproduce runtime [only=gps,grit]``; the number of threads is that of the environment (``OMP_NUM_THREADS``).
"""

import os
import platform
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import torch

from grit import kernels
from grit.datasets import store_path
from grit.memory import keep_freed_memory
from grit.studies.results_table import Cell, ResultsTable
from grit.studies.runs import chosen
from grit.studies.runtime.peak_memory import MemoryRequest, resident_growth
from grit.studies.runtime.timed_models import CONTESTANTS, PAPER, Runner, batches
from grit.studies.study import Workbench
from grit.studies.study_data import StudyData, open_data

TRAINING_GRAPHS, ALL_GRAPHS = 10_000, 12_000  # of ZINC
BASE = "grit"


class Effort(NamedTuple):
    """How much is measured: rounds in which every model takes a step, graphs per step, steps of the memory probe."""

    rounds: int
    batch_size: int = 32
    memory_steps: int = 5


EFFORTS = {"smoke": Effort(2, 8, 1), "small": Effort(15), "paper": Effort(50, memory_steps=20)}


def run(bench: Workbench) -> None:
    """Write the table ``runtime``."""
    effort = EFFORTS[bench.budget]
    names = chosen(bench, CONTESTANTS, known=("only",))
    data = open_data(bench, "zinc", (effort.rounds * effort.batch_size, 1, 1) if bench.budget != "paper" else None)
    times = bench.piece("times", lambda: measure_times(bench, names, data, effort))
    memory = dict(
        bench.pieces(
            [f"memory {name}" for name in names],
            lambda key: resident_growth(_request(key.removeprefix("memory "), bench, data, effort)),
            "memory",
        )
    )
    bench.table(
        "runtime",
        runtime_table(times, {name: memory[f"memory {name}"] for name in names}, data, effort),
    )


def measure_times(bench: Workbench, names: list[str], data: StudyData, effort: Effort) -> dict[str, Any]:
    """Seconds of steps and encodings, taken in turns; the machine on which they were taken."""
    keep_freed_memory()  # as training does
    runners = {name: Runner(CONTESTANTS[name], data.store) for name in names}
    rounds = batches(data.store, effort.rounds, effort.batch_size)
    for runner in runners.values():  # the first step of each is slower
        runner.step(rounds[0])
        runner.encode(rounds[0])
    steps: dict[str, list[float]] = {name: [] for name in names}
    encodings: dict[str, list[float]] = {name: [] for name in names}
    for graphs in bench.track(rounds, "rounds"):
        for name, runner in runners.items():
            steps[name].append(runner.step(graphs))
            encodings[name].append(runner.encode(graphs))
    return {
        "steps": steps,
        "encodings": encodings,
        "parameters": {name: runner.num_parameters for name, runner in runners.items()},
        "machine": describe_machine(),
    }


def _request(name: str, bench: Workbench, data: StudyData, effort: Effort) -> MemoryRequest:
    path = store_path("zinc", bench.root)
    return MemoryRequest(
        contestant=name,
        store=str(path) if path.exists() else None,
        graphs=int(data.store.split("train").size),
        batch_size=effort.batch_size,
        steps=effort.memory_steps,
        threads=torch.get_num_threads(),
    )


def describe_machine(device: str = "no GPU used") -> str:
    """Processor, threads, what is said of the GPU, and kernels, in words."""
    return (
        f"{_processor()}, {os.cpu_count()} processors, {torch.get_num_threads()} thread(s), {device}; "
        f"torch {torch.__version__}, kernels of GRIT: {kernels.status().active}"
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()


def runtime_table(
    times: dict[str, Any], memory: dict[str, float | None], data: StudyData, effort: Effort
) -> ResultsTable:
    """One row per model, everything also as a ratio to GRIT, beside the paper's."""
    step = {name: median(seconds) for name, seconds in times["steps"].items()}
    encoding = {name: median(seconds) for name, seconds in times["encodings"].items()}
    rows: list[list[Cell]] = []
    for name in step:
        paper = PAPER[CONTESTANTS[name].paper]
        rows.append(
            [
                CONTESTANTS[name].title,
                times["parameters"][name],
                round(1e3 * step[name], 1),
                round(step[name] * TRAINING_GRAPHS / effort.batch_size, 1),
                _ratio(step[name], step.get(BASE)),
                f"{paper.seconds_per_epoch} s, {paper.seconds_per_epoch / PAPER['GRIT'].seconds_per_epoch:.2f}",
                round(encoding[name] * ALL_GRAPHS / effort.batch_size, 2),
                f"{paper.encoding_seconds:g} s",
                _rounded(memory[name]),
                _ratio(memory[name], memory.get(BASE)),
                f"{paper.megabytes} MB, {paper.megabytes / PAPER['GRIT'].megabytes:.2f}",
            ]
        )
    columns = (
        "model",
        "parameters",
        "ms per step",
        "s per epoch",
        "time / GRIT's",
        "paper: epoch, / GRIT's",
        "encoding of ZINC, s",
        "paper",
        "memory, MB",
        "memory / GRIT's",
        "paper: memory, / GRIT's",
    )
    remarks = [
        f"Measured on: {times['machine']}. The paper's numbers are of one V100 GPU and 20 threads; only ratios can be compared, "
        "and those with care, because what is slow differs between the two.",
        f"A step: {effort.batch_size} graphs from the store to a batch with its encoding, forward, backward, clipping, "
        f"optimizer; the median of {effort.rounds} rounds in which the models take turns. An epoch is extrapolated to the "
        f"{TRAINING_GRAPHS:,} training graphs, the encoding, which is part of the step here and precomputed in the paper, to all "
        f"{ALL_GRAPHS:,} graphs.",
        f"Memory: growth of the resident memory of a fresh process over {effort.memory_steps} step(s), from before the model is "
        "built to the peak; in the paper what the GPU's driver reports, which has the framework in it.",
        "SAN: its authors' configuration for ZINC (ten layers of 56, attention over real and fake edges, a Transformer over ten "
        "Laplacian eigenvectors with an FFN of 2048), built for 28 atom types as in GraphGPS.",
        "GPS: GraphGPS's configuration for ZINC (ten layers of 64, GINE and attention with 4 heads, 20 return probabilities), "
        "built for 28 atom types as there.",
    ]
    if data.note:
        remarks.append(f"{data.note}.")
    return ResultsTable("Time and memory of training on ZINC", columns, rows, remarks)


def _ratio(value: float | None, base: float | None) -> str | None:
    return None if value is None or not base else f"{value / base:.2f}"


def _rounded(value: float | None) -> int | None:
    return None if value is None else round(value)
