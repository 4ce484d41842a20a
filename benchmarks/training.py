"""Overhead of the training loop: `python benchmarks/training.py [--recipe zinc] [--steps 30] [--json FILE]`.

What share of an epoch's time is spent outside forward, backward and optimizer: preparing batches, bookkeeping, telling
watchers. Measured on the bundled molecules with the model of a recipe, in one run.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import grit
from grit.datasets import load
from grit.training.loop import TrainingLoop
from grit.training.run_folder import RunFolder, describe_data
from grit.training.tasks import Task
from grit.training.train import make_fabric


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recipe", default="zinc")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    store = load("zinc-mini")
    recipe = grit.load_recipe(arguments.recipe, "dataset=zinc-mini", "train.warmup_epochs=0")
    few = store.split("train")[: arguments.steps * recipe.train.batch_size]
    store = store.with_splits({"train": few, "val": store.split("val")})
    task = Task.fitted(store.task, store.targets(few))
    with tempfile.TemporaryDirectory() as folder:
        run = RunFolder.create(Path(folder) / "run", recipe, describe_data(store, (0.0,), (1.0,)))
        loop = TrainingLoop(recipe, store, run, make_fabric("32-true", "cpu"), task, watch=lambda event: None)
        inside = 0.0
        step = loop._step

        def timed(batch, ends_step):
            nonlocal inside
            start = time.perf_counter()
            loss = step(batch, ends_step)
            inside += time.perf_counter() - start
            return loss

        loop._step = timed
        start = time.perf_counter()
        loop._train_epoch()
        total = time.perf_counter() - start
    figures = {
        "recipe": arguments.recipe,
        "steps": arguments.steps,
        "seconds_per_step": total / arguments.steps,
        "share_outside_the_step": 1 - inside / total,
    }
    print(
        f"{arguments.recipe}: {arguments.steps} steps, {1e3 * figures['seconds_per_step']:.0f} ms each; "
        f"{figures['share_outside_the_step']:.1%} of the time outside forward, backward and optimizer"
    )
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
