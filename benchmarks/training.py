"""Overhead of the training loop: `python benchmarks/training.py [--recipe zinc] [--steps 30] [--epoch] [--json FILE]`.

What share of the time is spent outside forward, backward and optimizer: preparing batches, bookkeeping, telling watchers.
Measured on the bundled molecules with the model of a recipe, in one run. `--epoch` takes a whole epoch of the recipe's own
data set instead, and shows what validation and saving add.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import grit
from grit.datasets import load
from grit.kernels import keep_freed_memory
from grit.learning.task import Task
from grit.training.loop import TrainingLoop
from grit.training.run_folder import RunFolder, describe_data
from grit.training.train import make_fabric


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recipe", default="zinc")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--epoch", action="store_true", help="a whole epoch of the recipe's data set, with validation")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    keep_freed_memory()  # as the commands do
    recipe = grit.load_recipe(arguments.recipe, "train.warmup_epochs=0")
    store = load(recipe.dataset if arguments.epoch else "zinc-mini")
    chosen = store.split("train")
    if not arguments.epoch:
        chosen = chosen[: arguments.steps * recipe.train.batch_size]
    store = store.with_splits({"train": chosen, "val": store.split("val")})
    task = Task.fitted(store.task, store.targets(chosen))
    with tempfile.TemporaryDirectory() as folder:
        run = RunFolder(Path(folder) / "run")
        data = describe_data(store, task, {})
        run.begin(recipe, data)
        loop = TrainingLoop(recipe, store, run, make_fabric("32-true", "cpu"), task, data, watch=lambda event: None)
        inside, steps = 0.0, 0
        step = loop.step

        def timed(batch, ends_step):
            nonlocal inside, steps
            start = time.perf_counter()
            loss = step(batch, ends_step)
            inside += time.perf_counter() - start
            steps += 1
            return loss

        loop.step = timed
        start = time.perf_counter()
        loop.train_epoch()
        training = time.perf_counter() - start
        if arguments.epoch:
            loop.validate()
        total = time.perf_counter() - start
    figures = {
        "recipe": arguments.recipe,
        "steps": steps,
        "seconds_per_step": inside / steps,
        "share_outside_the_step": 1 - inside / training,
    }
    print(
        f"{arguments.recipe}: {steps} steps, {1e3 * figures['seconds_per_step']:.0f} ms each; "
        f"{figures['share_outside_the_step']:.1%} of the time outside forward, backward and optimizer"
    )
    if arguments.epoch:
        figures["seconds_per_epoch"], figures["epoch_beyond_its_steps"] = total, total / inside - 1
        print(
            f"an epoch with validation and saving: {total:.1f} s, {figures['epoch_beyond_its_steps']:.1%} more than its steps"
        )
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
