"""Models that read a `PairBatch`: GRIT, and the baselines that train in its place, in the table `BASELINES`."""

from collections.abc import Callable

from torch import nn

from grit.graphs.schema import GraphSchema
from grit.models.gine import Gine
from grit.models.gps import Gps

BASELINES: dict[str, Callable[[GraphSchema], nn.Module]] = {
    "gine": Gine,
    "gps": Gps,
}

__all__ = ["BASELINES", "Gine", "Gps"]
