"""The rules of `HEADS`."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from grit.nn.heads import HEADS
from grit.testing.modules import check_gradients, check_module, seeded
from grit.testing.rules import Rules, find_entry

_DIM, _OUTPUTS = 16, 5


def check_head(head: str | Callable[..., nn.Module], *, num_layers: tuple[int, ...] = (1, 2, 3)) -> None:
    """Raise `AssertionError` unless a head keeps the rules of its table.

    Shapes and types, for any number of rows; every row is predicted for itself; gradients reach every parameter; finite numbers,
    also for rows of zeros.

    Args:
        head: Entry of `HEADS`, or its name.
        num_layers: Depths to try.
    """
    rules, made = find_entry("head", head, HEADS)
    with rules.works("it takes hidden_dim, num_outputs, num_layers and activation, and any rows"):
        for layers in num_layers:
            for activation in ("relu", "gelu"):
                _check(rules, made, layers, activation)


def _check(rules: Rules, made: Callable[..., nn.Module], layers: int, activation: str) -> None:
    def make() -> nn.Module:
        return made(hidden_dim=_DIM, num_outputs=_OUTPUTS, num_layers=layers, activation=activation).double()

    rows = torch.randn(7, _DIM, dtype=torch.float64, generator=torch.Generator().manual_seed(0))

    def run(head: nn.Module, given: Tensor = rows) -> Tensor:
        with torch.no_grad():
            predicted: Tensor = head(given)
        return predicted

    head = seeded(make)
    trained = head(rows)
    rules.shape("predictions are (rows, num_outputs)", trained, (7, _OUTPUTS))
    check_gradients(rules, head, trained.square().sum())
    check_module(rules, make, run)
    head.eval()
    predicted = run(head)
    rules.hold("predictions have the type of the rows", predicted.dtype == torch.float64, f"got {predicted.dtype}")
    rules.finite("predictions are finite", predicted)
    rules.finite("predictions are finite for rows of zeros", run(head, torch.zeros_like(rows)))
    rules.shape("no rows give no predictions", run(head, rows[:0]), (0, _OUTPUTS))
    alone = torch.cat([run(head, row) for row in rows.unsqueeze(1)])
    rules.close("every row is predicted for itself", predicted, alone)
