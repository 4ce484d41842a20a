"""``grit demo``."""

from typing import Annotated

import typer


def demo(
    steps: Annotated[int, typer.Option(min=1, help="Training steps.")] = 60,
    seed: Annotated[int, typer.Option(min=0, max=2**31, help="Of graphs, weights and shuffling.")] = 0,
) -> None:
    """Train a small GRIT on generated graphs: count the triangles of a graph."""
    from grit.training.demo import run_demo

    run_demo(steps=steps, seed=seed)
