"""The one error type that a user's mistake raises, how its message shows what was found, and work that was stopped."""

import errno
import re

# Neither torch nor the system's loader has an error type for it on a CPU.
_NO_MEMORY = re.compile(
    r"allocate memory|out of memory|not enough memory|bad_alloc|cannot map|failed to map|size calculation"
)


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


def lacks_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out."""
    is_memory = isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM)
    return is_memory or (isinstance(error, RuntimeError | ImportError) and _NO_MEMORY.search(str(error)) is not None)
