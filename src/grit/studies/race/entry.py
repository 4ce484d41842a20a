"""A system in a race, and how far it came."""

from statistics import mean
from typing import Any, NamedTuple

from grit.studies.race.probe import ProbeResult
from grit.studies.runs import Outcome, outcome_of
from grit.studies.systems import System


class Entry(NamedTuple):
    """One system.

    Attributes:
        system: Which.
        probe: What a step of it costs.
        epochs: That it was to train.
        results: Of each run so far, as in ``result.json``.
        failure: Why there are no more; None if nothing failed.
    """

    system: System
    probe: ProbeResult | None = None
    epochs: int | None = None
    results: tuple[dict[str, Any], ...] = ()
    failure: str | None = None

    @property
    def outcome(self) -> Outcome:
        """Test results and time of the runs."""
        return outcome_of(list(self.results))

    @property
    def minutes(self) -> float:
        """Of training and validation, the mean of the runs."""
        return self.outcome.seconds / len(self.results) / 60

    @property
    def epochs_done(self) -> float:
        """The mean of the runs; an epoch that the clock ended counts as far as it came."""
        return float(mean(result["epochs"] - 1 + result.get("cut_at", 1.0) for result in self.results))
