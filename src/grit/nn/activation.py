"""Activations by name."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from grit.errors import GritError

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": torch.relu, "gelu": F.gelu}


def activation_function(name: str) -> Callable[[Tensor], Tensor]:
    """The function of that name."""
    if name not in ACTIVATIONS:
        raise GritError(f"unknown activation {name!r}; there are {', '.join(ACTIVATIONS)}.")
    return ACTIVATIONS[name]
