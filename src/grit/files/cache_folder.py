"""The user's cache folder, where data sets and compiled kernels are kept."""

import os
from pathlib import Path


def user_cache() -> Path | None:
    """``$XDG_CACHE_HOME``, or ``~/.cache``; None where there is no home.

    By the XDG specification a path that is empty or relative counts as none: data must not land wherever one happens to stand.
    """
    named = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(named):
        return Path(named)
    home = os.path.expanduser("~") if os.environ.get("HOME") != "" else ""
    return Path(home, ".cache") if os.path.isabs(home) else None
