"""Baselines: other models that read the same batches and train in the same loop: the table `BASELINES`."""

from collections.abc import Callable

from torch import nn

from grit.baselines.gine import Gine
from grit.baselines.gps import Gps
from grit.graphs.schema import GraphSchema

BASELINES: dict[str, Callable[[GraphSchema], nn.Module]] = {
    "gine": Gine,
    "gps": Gps,
}

__all__ = ["BASELINES", "Gine", "Gps"]
