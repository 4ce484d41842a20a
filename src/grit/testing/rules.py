"""How a check says which rule an entry breaks."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

import torch
from torch import Tensor

from grit.errors import GritError, shorten

Entry = TypeVar("Entry")

# What code raises that was not written for a case; anything else, such as no memory, is not a rule that it breaks.
_BREAKS = (ArithmeticError, AttributeError, LookupError, NotImplementedError, RuntimeError, TypeError, ValueError)


def find_entry(what: str, entry: str | Entry, table: Mapping[str, Entry]) -> tuple["Rules", Entry]:
    """An entry that is given by its name or as itself, and the rules it will be held to.

    Args:
        what: What kind of entry it is, for messages.
        entry: The entry, or its name in the table.
        table: The table.
    """
    if not isinstance(entry, str):
        return Rules(f"{what} {entry.__name__ if isinstance(entry, type) else shorten(str(entry))}"), entry
    if entry not in table:
        raise GritError(f"unknown {what} {entry!r}; there are {', '.join(table)}.")
    return Rules(f"{what} {entry!r}"), table[entry]


class Rules:
    """What an entry must keep. Every method raises `AssertionError` that names the entry and the rule.

    Args:
        who: The entry, as messages name it.
    """

    def __init__(self, who: str) -> None:
        self.who = who

    def hold(self, rule: str, condition: bool, found: str = "") -> None:
        """A condition that must be true."""
        if not condition:
            raise AssertionError(f"{self.who}: {rule}{': ' if found else ''}{found}.")

    def shape(self, rule: str, got: Tensor, wanted: tuple[int, ...]) -> None:
        """The shape that a tensor must have."""
        self.hold(rule, isinstance(got, Tensor), f"got {type(got).__name__}")
        self.hold(rule, tuple(got.shape) == wanted, f"got {tuple(got.shape)}, expected {wanted}")

    def finite(self, rule: str, got: Tensor) -> None:
        """Neither infinite nor nan."""
        bad = int((~torch.isfinite(got)).sum())
        self.hold(rule, bad == 0, f"{bad} of {got.numel()} numbers are infinite or nan")

    def close(self, rule: str, got: Tensor, wanted: Tensor) -> None:
        """Equal up to rounding."""
        self.shape(rule, got, tuple(wanted.shape))
        try:
            torch.testing.assert_close(got, wanted)
        except AssertionError as error:
            raise AssertionError(f"{self.who}: {rule}: {error}") from None

    def equal(self, rule: str, got: Tensor, wanted: Tensor) -> None:
        """Equal to the bit."""
        self.shape(rule, got, tuple(wanted.shape))
        different = int((got != wanted).sum())
        self.hold(rule, different == 0, f"{different} of {got.numel()} numbers differ")

    @contextmanager
    def works(self, rule: str) -> Iterator[None]:
        """What is done in the block must not raise."""
        try:
            yield
        except _BREAKS as error:
            raise AssertionError(f"{self.who}: {rule}: it raises {type(error).__name__}: {error}") from error

    @contextmanager
    def refused(self, rule: str) -> Iterator[None]:
        """What is done in the block must raise `GritError`."""
        try:
            yield
        except GritError:
            return
        except _BREAKS as error:
            raise AssertionError(
                f"{self.who}: {rule}: it raises {type(error).__name__} where GritError is expected: {error}"
            ) from error
        raise AssertionError(f"{self.who}: {rule}: it raises nothing.")
