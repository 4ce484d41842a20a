"""The one error type that a user's mistake raises, how its message shows what was found, and work that was stopped."""


class GritError(ValueError):
    """What was wrong, where, what was expected, and what to do, in one message."""


class Interrupted(GritError):
    """Work was stopped from outside, after saving: not a mistake, and it can be resumed."""


def shown(value: object) -> str:
    """A value as a message shows it."""
    return shorten(repr(value))


def shorten(text: str) -> str:
    """A text cut to a length that can be read."""
    return text if len(text) <= 80 else f"{text[:60]}... ({len(text):,} characters)"
