"""To be removed: `grit.kernels.backend` is the name now. Still imported by native, pair_attention and two files of nn."""

from grit.kernels.backend import choice, library, loaded

__all__ = ["choice", "keeps_projection", "library", "loaded"]


def keeps_projection() -> bool:
    """No more: GRIT_MEMORY is gone."""
    return False
