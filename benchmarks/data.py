"""Speed and memory of the data side, as ratios and rates: `python benchmarks/data.py [--graphs N] [--json FILE]`.

1. RRWP of 1,000 molecules: our sparse-dense products against batched dense products and per-graph dense products.
2. A batch of 32 molecules from a store: gather, pairs, RRWP.
3. A large store (3.7 million graphs like PCQM4Mv2's, generated): writing in chunks, opening, reading in random order.

Everything runs in one thread of one process; what is compared is interleaved.
"""

import argparse
import json
import resource
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from grit.batches.pair_batch import PairBatch
from grit.batches.spec import BatchSpec
from grit.datasets import load
from grit.encodings.rrwp import rrwp_encoding
from grit.graphs.chunk import GraphChunk
from grit.graphs.pairs import choose_pairs
from grit.graphs.schema import OGB_ATOM, OGB_BOND, GraphSchema, TaskSpec
from grit.graphs.store import GraphStore
from grit.graphs.store_writer import StoreWriter

WALK_STEPS = 21


def batched_dense(graphs, walk_steps):
    """Powers of all walk matrices at once, padded to the largest graph."""
    n = graphs.nodes_per_graph
    size = int(n.max())
    graph = graphs.graph_of_node
    source, target = graphs.edge_index
    step = torch.zeros(len(graphs), size, size)
    first = graphs.node_ptr[:-1]
    step[graph[source], source - first[graph[source]], target - first[graph[target]]] = 1.0
    step /= step.sum(-1, keepdim=True).clamp(min=1)
    powers = [torch.eye(size).expand(len(graphs), size, size)]
    for _ in range(walk_steps - 1):
        powers.append(powers[-1] @ step)
    real = torch.arange(size) < n[:, None]
    return torch.stack(powers, -1)[real[:, :, None] & real[:, None, :]]


def per_graph_dense(graphs, walk_steps):
    """The released code's way: dense powers, one graph after the other."""
    out = []
    for g in range(len(graphs)):
        first, n = int(graphs.node_ptr[g]), int(graphs.nodes_per_graph[g])
        edges = graphs.edge_index[:, int(graphs.edge_ptr[g]) : int(graphs.edge_ptr[g + 1])] - first
        step = torch.zeros(n, n)
        step[edges[0], edges[1]] = 1.0
        step /= step.sum(-1, keepdim=True).clamp(min=1)
        powers = [torch.eye(n)]
        for _ in range(walk_steps - 1):
            powers.append(powers[-1] @ step)
        out.append(torch.stack(powers, -1).view(n * n, walk_steps))
    return torch.cat(out)


def interleaved(ways, rounds):
    """Median seconds of each way, taken in turns."""
    times = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(seconds) for name, seconds in times.items()}


def memory():
    """Resident memory of this process in MB, and the part of it that is not mapped files."""
    fields = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines() if ":" in line)
    return int(fields["VmRSS"].split()[0]) / 1024, int(fields["RssAnon"].split()[0]) / 1024


def like_pcqm(count, rng):
    """Random molecules in shape: trees of about 14 nodes with one or two rings closed, random OGB features."""
    n = rng.integers(9, 20, count)
    node = np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n)
    graph = np.repeat(np.arange(count), n)
    child = node > 0
    parent = (rng.random(child.sum()) * node[child]).astype(np.int64)
    rings = np.arange(count)
    a = np.concatenate([node[child], (rng.random(count) * n).astype(np.int64)])
    b = np.concatenate([parent, (rng.random(count) * n).astype(np.int64)])
    owner = np.concatenate([graph[child], rings])
    order = np.argsort(np.concatenate([owner, owner]), kind="stable")
    edge_index = np.stack([np.concatenate([a, b])[order], np.concatenate([b, a])[order]])
    edges = edge_index.shape[1]
    return GraphChunk(
        num_nodes=n,
        num_edges=2 * np.bincount(owner, minlength=count),
        x=np.stack([rng.integers(0, size, n.sum(), dtype=np.uint8) for size in OGB_ATOM.sizes], 1),
        edge_index=edge_index,
        edge_attr=np.stack([rng.integers(0, size, edges, dtype=np.uint8) for size in OGB_BOND.sizes], 1),
        y=rng.standard_normal((count, 1)).astype(np.float32),
    )


def large_store(folder, count, chunk=50_000):
    rng = np.random.default_rng(0)
    task = TaskSpec(kind="regression", targets=("gap",), loss="l1", metric="mae")
    schema = GraphSchema(node=OGB_ATOM, edge=OGB_BOND)
    peak_before = memory()[1]
    start = time.perf_counter()
    with StoreWriter(folder, name="large", graphs=schema, task=task, source="generated") as writer:
        for begin in range(0, count, chunk):
            writer.append(like_pcqm(min(chunk, count - begin), rng))
        writer.finish({"train": np.arange(count)})
    return time.perf_counter() - start, memory()[1] - peak_before


def read_at_random(folder, batches, batch_size=256, walk_steps=16):
    start = time.perf_counter()
    store = GraphStore.open(folder)
    opened = time.perf_counter() - start
    start = time.perf_counter()
    store.verify()
    verified = time.perf_counter() - start
    (folder / "y.npy").touch()
    start = time.perf_counter()
    store = GraphStore.open(folder)
    touched = time.perf_counter() - start
    rng = np.random.default_rng(1)
    before, graphs, largest = memory(), 0, 0.0
    start = time.perf_counter()
    for _ in range(batches):
        graphs += len(PairBatch.from_store(store, rng.integers(0, len(store), batch_size), BatchSpec(walk_steps)))
        largest = max(largest, memory()[0])
    seconds = time.perf_counter() - start
    return {
        "open_seconds": opened,
        "open_after_touch_seconds": touched,
        "verify_seconds": verified,
        "graphs_per_second": graphs / seconds,
        "resident_mb_before": before[0],
        "resident_mb_largest": largest,
        "store_mb": store.num_bytes / 1e6,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", type=int, default=3_700_000, help="size of the large store")
    parser.add_argument("--batches", type=int, default=400, help="batches of 256 read from it")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    store = load("zinc-mini")
    thousand = store.gather(np.arange(1000))
    pairs = choose_pairs(thousand)
    ways = {
        "sparse-dense (ours)": lambda: rrwp_encoding(thousand, pairs, WALK_STEPS, torch.float32),
        "batched dense": lambda: batched_dense(thousand, WALK_STEPS),
        "dense, graph by graph": lambda: per_graph_dense(thousand, WALK_STEPS),
    }
    reference = per_graph_dense(thousand, WALK_STEPS)
    assert torch.allclose(rrwp_encoding(thousand, pairs, WALK_STEPS, torch.float32).pair, reference, atol=1e-6)
    assert torch.allclose(batched_dense(thousand, WALK_STEPS), reference, atol=1e-6)
    seconds = interleaved(ways, rounds=7)
    ours = seconds["sparse-dense (ours)"]
    print(f"RRWP of 1,000 molecules, K = {WALK_STEPS}, one thread")
    for name, value in seconds.items():
        print(f"  {name:24s} {1e3 * value:8.1f} ms   {value / ours:5.2f} x ours")
    rng = np.random.default_rng(0)
    chosen = iter([rng.integers(0, len(store), 32) for _ in range(60)])
    taking = interleaved({"take": lambda: PairBatch.from_store(store, next(chosen), BatchSpec(WALK_STEPS))}, rounds=60)[
        "take"
    ]
    print(f"a batch of 32 molecules (gather, pairs, RRWP): {1e3 * taking:.2f} ms median")
    figures = {"rrwp_seconds": seconds, "take_32_seconds": taking}
    folder = Path(tempfile.mkdtemp()) / "large"
    try:
        seconds_to_write, grown = large_store(folder, arguments.graphs)
        print(f"writing {arguments.graphs:,} graphs: {seconds_to_write:.0f} s; memory grew by {grown:.0f} MB")
        figures |= read_at_random(folder, arguments.batches)
        print(
            f"reading {arguments.batches} random batches of 256, K = 16: {figures['graphs_per_second']:,.0f} graphs/s; "
            f"opened in {1e3 * figures['open_seconds']:.1f} ms, after a change in {figures['open_after_touch_seconds']:.1f} s, "
            f"verified in {figures['verify_seconds']:.1f} s; store {figures['store_mb']:.0f} MB; resident "
            f"{figures['resident_mb_before']:.0f} MB before, {figures['resident_mb_largest']:.0f} MB at most"
        )
    finally:
        shutil.rmtree(folder.parent)
    figures |= {"write_seconds": seconds_to_write, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
