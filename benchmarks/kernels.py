"""Fused kernels against the plain form, PyG's GPS and the matrix products alone: `python benchmarks/kernels.py [--json FILE]`.

One table, as ratios: what is compared runs in turns in one process, on the same batch, with the same allocator settings.
Memory is the largest resident size above that before the first step, each in a process of its own. `--only zinc` runs
one row, `--quick` few rounds.
"""

import argparse
import json
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import torch
from data import WALK_STEPS, batched_dense, per_graph_dense
from torch_geometric.data import Data

import grit
from grit import kernels
from grit.batches.pair_batch import PairBatch
from grit.batches.spec import BatchSpec
from grit.datasets import load, load_schema
from grit.encodings.rrwp import rrwp_encoding
from grit.graphs.convert import pack
from grit.graphs.pairs import choose_pairs
from grit.memory import proc_bytes
from grit.studies.runtime.floor import run_floor
from grit.studies.runtime.peak_memory import forget_peak


class Work(NamedTuple):
    """A row of the table: a recipe, and graphs like those of its data set."""

    recipe: str
    sizes: tuple[int, ...]
    degree: float
    plain: bool = True  # whether the plain form fits a small machine
    gps: bool = False


def drawn_sizes(count, mean, spread, largest, seed=0):
    """Sizes of graphs, about normal."""
    generator = torch.Generator().manual_seed(seed)
    return tuple((mean + spread * torch.randn(count, generator=generator)).round().clamp(8, largest).int().tolist())


WORKS = {
    "zinc B=32": Work("zinc", (), 0, gps=True),
    "mnist-like B=16": Work("mnist", drawn_sizes(16, 70, 4, 75), 8),
    "pattern-like B=8": Work("pattern", drawn_sizes(8, 118, 30, 188), 51),
    "pattern-like B=32": Work("pattern", drawn_sizes(32, 118, 30, 188), 51, plain=False),
    "cluster-like B=16": Work("cluster", drawn_sizes(16, 117, 30, 190), 37, plain=False),
    "peptides-like B=16": Work("peptides-func", drawn_sizes(16, 150, 80, 444), 2, plain=False),
    "one graph, n=444": Work("peptides-func", (444,), 2),
    "one graph, n=2000": Work("peptides-func", (2000,), 2, plain=False),
}


def random_graph(schema, nodes, degree, seed):
    """A connected graph with features of that kind."""
    generator = torch.Generator().manual_seed(seed)
    draw = lambda size, high: torch.randint(high, size, generator=generator)  # noqa: E731
    parents = (torch.rand(nodes - 1, generator=generator) * torch.arange(1, nodes)).long()
    extra = draw((2, max(0, round(nodes * (degree - 2) / 2))), nodes)
    half = torch.cat([torch.stack([parents, torch.arange(1, nodes)]), extra], 1)
    edges = torch.cat([half, half.flip(0)], 1)

    def features(kind, rows):
        if not kind.is_integer:
            return torch.rand(rows, kind.width, generator=generator)
        columns = [draw((rows,), size) for size in kind.sizes]
        return torch.stack(columns, 1) if columns else torch.zeros(rows, 0, dtype=torch.int64)

    return Data(x=features(schema.node, nodes), edge_index=edges, edge_attr=features(schema.edge, edges.shape[1]))


def setting(name):
    """Model, batch and recipe of a row."""
    work = WORKS[name]
    recipe = grit.load_recipe(work.recipe)
    schema = load_schema(work.recipe)
    if work.sizes:
        data = [random_graph(schema, n, work.degree, seed) for seed, n in enumerate(work.sizes)]
        batch = grit.PairBatch.from_data_list(data, recipe.encoding.walk_steps)
    else:
        store = load("zinc-mini")
        batch = PairBatch.from_store(store, store.split("train")[:32], recipe.batch_spec())
    return grit.build_model(recipe), batch, recipe


def training_step(model, batch):
    """Forward, backward, clipping, AdamW."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=1e-5, fused=True)

    def step():
        model.train()
        model(batch).square().mean().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def inference(model, batch):
    """Forward without gradients."""

    def step():
        model.eval()
        with torch.no_grad():
            model(batch)

    return step


def with_form(form, step):
    """The step with that form of the kernels."""

    def run():
        with kernels.use(form):
            step()

    return run


def in_turns(steps, rounds):
    """Seconds of each step in every round; the first round is not counted."""
    times = {name: [] for name in steps}
    for number in range(rounds + 1):
        for name, step in steps.items():
            start = time.perf_counter()
            step()
            if number:
                times[name].append(time.perf_counter() - start)
    return times


def compare(times, base="fused"):
    """Median milliseconds, and the median of each paired ratio to ``base``."""
    return {
        name: {
            "ms": 1e3 * statistics.median(values),
            "ratio": statistics.median(v / b for v, b in zip(values, times[base], strict=True)),
        }
        for name, values in times.items()
    }


def measure(name, rounds, work):
    """One row."""
    model, batch, recipe = setting(name)
    layers, width = recipe.model.num_layers, recipe.model.hidden_dim
    size = (batch.num_pairs, batch.graphs.num_nodes, width, layers)
    row = {"pairs": batch.num_pairs, "nodes": batch.graphs.num_nodes}
    for kind, make, training in (("train", training_step, True), ("infer", inference, False)):
        steps = {"fused": with_form("fused", make(model, batch))}
        steps["floor"] = lambda training=training: run_floor(*size, training=training)
        if work.plain:
            steps["plain"] = with_form("plain", make(model, batch))
        if work.gps:
            from grit.models import Gps

            encoding = recipe.encoding
            gps = Gps(load_schema("zinc-full"), encoding=encoding.name, walk_steps=encoding.walk_steps)
            steps["gps"] = make(gps, batch)
        few = max(3, min(rounds, int(rounds * 20_000 / batch.num_pairs)))
        row[kind] = compare(in_turns(steps, few))
    row["memory"] = {form: peak_memory(name, form) for form in (("fused", "plain") if work.plain else ("fused",))}
    return row


def peak_memory(name, form):
    """Bytes above start of two training steps, in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--worker", name, form], capture_output=True, text=True, check=True, timeout=3600
    )
    return int(done.stdout.split()[-1])


def worker(name, form):
    """Print the growth of the resident size over two training steps."""
    model, batch, _ = setting(name)
    step = with_form(form, training_step(model, batch))
    forget_peak()
    before = proc_bytes("/proc/self/status", "VmRSS")
    step()
    step()
    print(proc_bytes("/proc/self/status", "VmHWM") - before)


def walks(rounds):
    """RRWP of 1,000 molecules in one thread, against dense products."""
    store = load("zinc-mini")
    batches = [store.gather(store.split("train")[i : i + 32]) for i in range(0, 1000, 32)]
    pairs = [choose_pairs(graphs) for graphs in batches]

    def ours():
        for graphs, chosen in zip(batches, pairs, strict=True):
            rrwp_encoding(graphs, chosen, WALK_STEPS, torch.float32)

    everything = store.gather(store.split("train")[:1000])
    steps = {
        "fused": with_form("fused", ours),
        "plain": with_form("plain", ours),
        "batched dense": lambda: batched_dense(everything, WALK_STEPS),
        "per-graph dense": lambda: per_graph_dense(everything, WALK_STEPS),
    }
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    result = compare(in_turns(steps, rounds))
    take = in_turns(
        {"fused": lambda: PairBatch.from_store(store, store.split("train")[:32], BatchSpec(WALK_STEPS))}, 5 * rounds
    )
    torch.set_num_threads(threads)
    return result, 1e3 * statistics.median(take["fused"])


def growth(rounds):
    """Nanoseconds per pair as n grows: RRWP in one thread, as many pairs for every n; and a layer."""
    schema = load_schema("zinc")
    sizes = (10, 20, 50, 100, 200, 500, 1000, 2000)
    encodings, layers = {}, {}
    torch.set_num_threads(1)
    for n in sizes:
        different = [random_graph(schema, n, 2.2, seed) for seed in range(min(100, 4_000_000 // (n * n)))]
        graphs = pack([different[i % len(different)] for i in range(4_000_000 // (n * n))])
        pairs = choose_pairs(graphs)
        encodings[n] = with_form("fused", lambda g=graphs, p=pairs: rrwp_encoding(g, p, WALK_STEPS, torch.float32))
    encoding = in_turns(encodings, rounds)
    torch.set_num_threads(THREADS)
    for n in sizes:
        graphs = pack([random_graph(schema, n, 2.2, seed) for seed in range(max(1, 40_000 // (n * n)))])
        pairs = choose_pairs(graphs)
        layers[n] = pairs.num_pairs, with_form("fused", layer_step(graphs, pairs))
    rows = []
    for n, (num_pairs, step) in layers.items():
        one = statistics.median(in_turns({n: step}, max(3, rounds // 2))[n])
        rows.append({"n": n, "rrwp_ns": 1e9 * statistics.median(encoding[n]) / (4_000_000 // (n * n) * n * n)})
        rows[-1]["layer_ns"] = 1e9 * one / num_pairs
    return rows


def layer_step(graphs, pairs):
    """Forward and backward of one layer."""
    layer = grit.GritLayer(hidden_dim=64, num_heads=8)
    x, pair = torch.randn(graphs.num_nodes, 64), torch.randn(pairs.num_pairs, 64, requires_grad=True)

    def step():
        out, rows = layer(x, pair, pairs, torch.zeros(graphs.num_nodes))
        (out.sum() + rows.sum()).backward()

    return step


THREADS = torch.get_num_threads()


def show(figures):
    """The tables, as Markdown."""
    print("| | pairs | train: fused ms | plain / fused | fused / floor | fused / GPS | infer: fused ms | plain / fused | "
          "fused / floor | peak MB fused | plain |")  # fmt: skip
    print("|" + "---|" * 11)
    for name, row in figures["rows"].items():
        cells = [name, f"{row['pairs']:,}"]
        for kind in ("train", "infer"):
            parts = row[kind]
            cells.append(f"{parts['fused']['ms']:.0f}")
            cells.append(f"{parts['plain']['ratio']:.1f}" if "plain" in parts else "–")
            cells.append(f"{1 / parts['floor']['ratio']:.2f}")
            if kind == "train":
                cells.append(f"{1 / parts['gps']['ratio']:.2f}" if "gps" in parts else "–")
        memory = row["memory"]
        cells.append(f"{memory['fused'] / 1e6:.0f}")
        cells.append(
            f"{memory['plain'] / 1e6:.0f} ({memory['plain'] / memory['fused']:.1f}x)" if "plain" in memory else "–"
        )
        print("| " + " | ".join(cells) + " |")
    if "rrwp" in figures:
        print("\nRRWP of 1,000 molecules, K = 21, one thread: " + "; ".join(
            f"{name} {part['ms']:.0f} ms ({part['ratio']:.1f}x)" for name, part in figures["rrwp"].items()
        ) + f". A batch of 32 from a store: {figures['take_ms']:.1f} ms.")  # fmt: skip
        print("\n| n | RRWP, ns per pair (one thread) | layer forward and backward, ns per pair |\n|---|---|---|")
        for row in figures["growth"]:
            print(f"| {row['n']:,} | {row['rrwp_ns']:.1f} | {row['layer_ns']:.0f} |")


def main():
    """Run the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, default=None)
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    kernels.keep_freed_memory()
    if arguments.worker:
        worker(*arguments.worker)
        return
    status = kernels.status()
    if status.active != "fused":
        raise SystemExit(f"there is nothing to compare: {status.reason}")
    rounds = 5 if arguments.quick else 25
    figures = {
        "machine": f"{platform.machine()}, {THREADS} threads, torch {torch.__version__}, {status.reason.split(':')[0]}",
        "rows": {name: measure(name, rounds, work) for name, work in WORKS.items() if arguments.only in name},
    }
    if not arguments.only:
        figures["rrwp"], figures["take_ms"] = walks(rounds // 2)
        figures["growth"] = growth(rounds // 2)
    print(figures["machine"])
    show(figures)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
