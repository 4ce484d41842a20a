"""What every system of a race is given: epochs, minutes, or what its authors published."""

import re
from math import isfinite
from typing import Literal, NamedTuple

from grit.errors import GritError
from grit.studies.race.probe import ProbeResult

Kind = Literal["epochs", "time", "published"]
DEFAULTS = {"smoke": "epochs:1", "small": "epochs:5", "paper": "published"}
_EXPECTED = "expected budget=epochs:5 (epochs each), budget=time:10 (minutes each), or budget=published"


class RaceBudget(NamedTuple):
    """How long each system trains.

    Attributes:
        kind: ``epochs``, ``time`` or ``published``.
        amount: Epochs or minutes; 0 for ``published``.
    """

    kind: Kind
    amount: float = 0.0

    @property
    def words(self) -> str:
        """For a title."""
        if self.kind == "published":
            return "as published"
        unit = "epoch" if self.kind == "epochs" else "minute"
        return f"{self.amount:g} {unit}{'s' * (self.amount != 1)} each"

    def overrides(self, probe: ProbeResult) -> tuple[str, ...]:
        """What it changes in a recipe; the schedule and the warm-up follow ``train.epochs``."""
        if self.kind == "published":
            return ()
        if self.kind == "epochs":
            return (f"train.epochs={int(self.amount)}",)
        seconds = 60 * self.amount
        return (f"train.epochs={probe.epochs_within(seconds)}", f"train.max_seconds={seconds!r}")


def parse_budget(text: str) -> RaceBudget:
    """``epochs:5``, ``time:10`` (minutes, also ``time:0.5``) or ``published``."""
    if text == "published":
        return RaceBudget("published")
    if re.fullmatch(r"epochs:\d{1,9}", text) and (epochs := int(text.removeprefix("epochs:"))) > 0:
        return RaceBudget("epochs", epochs)
    if re.fullmatch(r"time:\d{1,9}(\.\d{1,9})?", text):
        minutes = float(text.removeprefix("time:"))
        if minutes > 0 and isfinite(minutes):
            return RaceBudget("time", minutes)
    raise GritError(
        f"budget={text}: {_EXPECTED}. How much data is used is another choice, --budget smoke, small or paper."
    )
