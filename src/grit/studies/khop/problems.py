"""The problems of the synthetic experiment: molecules, the attention that each should learn, training, and scores.

A problem is (method, molecule, k, learning rate). Those of one method and one molecule have the same shape, so they are
trained together: their parameters are stacked, and the attention is mapped over the stack. They do not touch one another,
since each has a loss of its own and Adam works element by element.

Shape letters: N nodes of the molecule, R problems that are trained together.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from grit.batches.pair_batch import PairBatch
from grit.datasets import load, store_path
from grit.graphs.packed import PackedGraphs

TARGETS = ("no-diagonal", "literal")
_SEED = 0


class Molecules(NamedTuple):
    """The drawn molecules.

    Attributes:
        dataset: Where they are from.
        graphs: One `PackedGraphs` for each.
    """

    dataset: str
    graphs: list[PackedGraphs]


def draw_molecules(count: int, root: Path | None) -> Molecules:
    """Molecules of ZINC drawn with a fixed seed; of the bundled zinc-mini if ZINC has not been built."""
    dataset = "zinc" if store_path("zinc", root).exists() else "zinc-mini"
    store = load(dataset, root)
    chosen = np.random.default_rng(_SEED).choice(len(store), count, replace=False)
    return Molecules(dataset, [store.gather([index]) for index in chosen.tolist()])


def khop_target(graph: PackedGraphs, hops: int, kind: str = "no-diagonal") -> Tensor:
    """The attention to be learned, (N, N): A^k with entries that are not zero made 1, rows then made to sum to 1.

    Args:
        graph: One graph.
        hops: k.
        kind: ``literal`` is that, ``no-diagonal`` leaves out the way back to the node itself. A node from which k steps lead
            nowhere (else) attends to itself.
    """
    n = graph.num_nodes
    adjacency = torch.zeros(n, n, dtype=torch.float64)
    adjacency[graph.edge_index[0], graph.edge_index[1]] = 1.0
    reached = (torch.linalg.matrix_power(adjacency, hops) > 0).double()
    if kind == "no-diagonal":
        reached.fill_diagonal_(0.0)
    nowhere = reached.sum(1) == 0
    reached[nowhere, nowhere] = 1.0
    target: Tensor = reached / reached.sum(1, keepdim=True)
    return target.float()


def mean_absolute_error(weights: Tensor, target: Tensor) -> Tensor:
    """(..., N, N) -> (...,)."""
    return (weights - target).abs().mean((-2, -1))


def r_squared(weights: Tensor, target: Tensor) -> Tensor:
    """1 - Σ (w - t)² / Σ (t - mean t)² over all N*N entries: (..., N, N) -> (...,). Equal weights have exactly 0."""
    spread = (target - target.mean((-2, -1), keepdim=True)).square().sum((-2, -1))
    return 1 - (weights - target).square().sum((-2, -1)) / spread


class ProblemwiseAdam:
    """Adam with a learning rate for each problem, the first dimension of every parameter.

    Args:
        parameters: Each (R, ...), changed in place.
        lr: (R,).
    """

    def __init__(self, parameters: list[Tensor], lr: Tensor) -> None:
        self.parameters = parameters
        self.lr = [lr.view(-1, *[1] * (parameter.dim() - 1)) for parameter in parameters]
        self.mean = [torch.zeros_like(parameter) for parameter in parameters]
        self.square = [torch.zeros_like(parameter) for parameter in parameters]
        self.steps = 0

    @torch.no_grad()
    def step(self, gradients: tuple[Tensor, ...]) -> None:
        """One step with β = (0.9, 0.999) and ε = 1e-8."""
        self.steps += 1
        small, root = 1 - 0.9**self.steps, (1 - 0.999**self.steps) ** 0.5
        for parameter, gradient, lr, mean, square in zip(
            self.parameters, gradients, self.lr, self.mean, self.square, strict=True
        ):
            mean.lerp_(gradient, 0.1)
            square.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
            parameter.sub_((lr / small) * mean / (square.sqrt() / root).add_(1e-8))


def train(probe: Callable[[], nn.Module], batch: PairBatch, targets: Tensor, lr: Tensor, steps: int) -> Tensor:
    """Train R probes on one molecule with the L1 loss, and give what they attend to.

    Args:
        probe: Draws a new one; its forward takes node and pair encoding and gives weights (N, N).
        batch: The molecule.
        targets: (K, N, N), one for each k.
        lr: (L,), every learning rate for every k; the same start for all rates.
        steps: Of Adam.

    Returns:
        (L, K, N, N), the weights after the last step.
    """
    num_lr, num_hops = len(lr), len(targets)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(_SEED)
        probes = [probe() for _ in range(num_hops)] * num_lr  # R = L * K of them
    stacked, _ = stack_module_state(probes)
    everything = targets.repeat(num_lr, 1, 1)  # (R, N, N)

    def attend() -> Tensor:
        inputs = (batch.node_encoding, batch.pair_encoding)
        weights: Tensor = vmap(lambda parameters: functional_call(probes[0], parameters, inputs))(stacked)
        return weights  # (R, N, N)

    loss = mean_absolute_error(attend(), everything).sum()
    gradients = torch.autograd.grad(loss, list(stacked.values()), allow_unused=True)
    names = [name for name, gradient in zip(stacked, gradients, strict=True) if gradient is not None]
    trained = [stacked[name] for name in names]  # not the maps to values
    adam = ProblemwiseAdam(trained, lr.repeat_interleave(num_hops))
    for _ in range(steps):
        adam.step(torch.autograd.grad(mean_absolute_error(attend(), everything).sum(), trained))
    return attend().detach().view(num_lr, num_hops, *targets.shape[1:])
