"""A claim, what was measured, and whether it holds; claims that are known to be wrong are kept, as ones that must fail."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from grit.studies.results_table import Cell, ResultsTable


class Check(NamedTuple):
    """One claim and its measurement, plain JSON.

    Attributes:
        claim: In words.
        measured: What came out.
        expected: What the claim asks for, or what is on record.
        holds: Whether the measurement supports the claim.
        should_hold: False for what must fail: printed mistakes, and cases beyond a proposition's limits.
    """

    claim: str
    measured: Cell
    expected: str
    holds: bool
    should_hold: bool = True

    @property
    def verdict(self) -> str:
        """In words."""
        if self.holds != self.should_hold:
            return "UNEXPECTED: holds" if self.holds else "UNEXPECTED: fails"
        return "holds" if self.holds else "fails, as expected"


def checks_table(title: str, checks: Iterable[Sequence[Any]], remarks: Sequence[str] = ()) -> ResultsTable:
    """One row per check."""
    rows = [
        [check.claim, check.measured, check.expected, check.verdict] for check in (Check(*fields) for fields in checks)
    ]
    return ResultsTable(title, ("claim", "measured", "expected", "verdict"), rows, remarks)
