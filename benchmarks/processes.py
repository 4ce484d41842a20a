"""A training step shared by two processes, fused against plain: `python benchmarks/processes.py`.

Batch normalisation is over the batch of both processes in either form. In the fused unit every normalisation calls back for a
sum over the processes, forward and backward.
"""

import os
import statistics
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

import grit
from grit import kernels
from grit.batches.pair_batch import PairBatch
from grit.datasets import load

ROUNDS = 15


def work(rank, world, file, results):
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=world)
    torch.set_num_threads(1)
    kernels.keep_freed_memory()
    recipe, store = grit.load_recipe("zinc"), load("zinc-mini")
    batch = PairBatch.from_store(store, store.split("train")[rank:32:world], recipe.batch_spec())
    model = grit.build_model(recipe).train()
    times = {"fused": [], "plain": []}
    for number in range(ROUNDS + 1):
        for form, taken in times.items():
            dist.barrier()
            start = time.perf_counter()
            with kernels.use(form):
                model(batch).square().mean().backward()
            model.zero_grad()
            if number:
                taken.append(time.perf_counter() - start)
    if rank == 0:
        results.update({form: 1e3 * statistics.median(taken) for form, taken in times.items()})
    dist.destroy_process_group()


def main():
    with tempfile.TemporaryDirectory() as folder, mp.Manager() as manager:
        for world in (1, 2):
            results = manager.dict()
            mp.spawn(work, (world, os.path.join(folder, f"meet-{world}"), results), nprocs=world)
            fused, plain = results["fused"], results["plain"]
            print(
                f"{world} process(es) of one thread: fused {fused:.0f} ms, plain {plain:.0f} ms, {plain / fused:.1f}x"
            )


if __name__ == "__main__":
    sys.exit(main())
