"""The one error type that a user's mistake raises."""


class GritError(ValueError):
    """What was wrong, where, what was expected, and what to do, in one message."""
