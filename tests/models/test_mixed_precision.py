"""Forward and backward of models under autocast to bfloat16, in a process of its own, as `tests/nn/test_autocast.py` says."""

import os
import subprocess
import sys
from pathlib import Path

import torch

NAMES = ("dgn", "gatedgcn", "gatedgcn-lspe", "gps", "signnet")


def test_forward_and_backward():
    done = subprocess.run(
        [sys.executable, "-m", "tests.models.test_mixed_precision"],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX2"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == list(NAMES)


def main():
    from grit.recipe.builder import build_batch, build_model
    from grit.recipe.load import load_recipe
    from grit.recipe.model_config import wanted_statistics
    from tests.training.small import small_graphs

    for name in NAMES:
        recipe = load_recipe(f"zinc-{name}", "model.num_layers=2")
        model = build_model(recipe, statistics={key: [0, 1, 2] for key in wanted_statistics(name)})
        with torch.autocast("cpu", torch.bfloat16):
            predicted = model(build_batch(recipe, small_graphs(5)))
        predicted.float().square().sum().backward()
        gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
        assert predicted.isfinite().all()
        assert all(gradient.isfinite().all() for gradient in gradients)
        print(name)


if __name__ == "__main__":
    main()
