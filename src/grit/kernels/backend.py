"""Which form of the kernels is used: ``GRIT_KERNELS=plain|fused|auto``, and `use` within a program.

``auto`` takes the fused form where it can be had and says once, in one line, if it cannot. ``fused`` makes that an error.

`DEVICES` lists where the fused unit runs. A backend for another device is a file that registers its kernels for the operators
``grit::layer_stack`` and ``grit::layer_stack_backward`` of `grit.kernels.stack`, and an entry here.
"""

import ctypes
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch

from grit.errors import GritError
from grit.kernels.build import KernelsUnavailable, Loaded, load_library

CHOICES = ("auto", "fused", "plain")


class Status(NamedTuple):
    """What is active and why, for ``grit doctor``."""

    choice: str
    active: str
    reason: str


class FusedDevice(NamedTuple):
    """A kind of device on which the fused unit runs.

    Attributes:
        dtypes: The numbers that its kernels compute with.
        is_ready: Whether its kernels can be had and are wanted.
    """

    dtypes: tuple[torch.dtype, ...]
    is_ready: Callable[[], bool]


DEVICES: dict[str, FusedDevice] = {
    "cpu": FusedDevice((torch.float32, torch.float64), lambda: library() is not None),
}  # by torch's name of the kind of device

_loaded: Loaded | None = None
_trouble: str | None = None
_chosen: list[str] = []


@contextmanager
def use(choice: str) -> Iterator[None]:
    """Within the block, ``plain``, ``fused`` or ``auto``, whatever the environment says."""
    if choice not in CHOICES:
        raise GritError(f"kernels are {', '.join(CHOICES)}, got {choice!r}.")
    _chosen.append(choice)
    try:
        yield
    finally:
        _chosen.pop()


def choice() -> str:
    """What was asked for."""
    if _chosen:
        return _chosen[-1]
    asked = os.environ.get("GRIT_KERNELS", "auto")
    if asked not in CHOICES:
        raise GritError(f"GRIT_KERNELS must be one of {', '.join(CHOICES)}, got {asked!r}.")
    return asked


def library() -> ctypes.CDLL | None:
    """The fused kernels, compiled if need be; None where the plain form is to be used."""
    asked = choice()
    if asked == "plain":
        return None
    trouble = _load()
    if trouble is not None and asked == "fused":
        raise GritError(
            f"the fused kernels were asked for, but {trouble}. GRIT_KERNELS=auto runs the plain form instead."
        )
    return None if _loaded is None else _loaded.library


def loaded() -> ctypes.CDLL:
    """The fused kernels, for what began with them: its backward pass does not ask again what is wanted."""
    assert _loaded is not None
    return _loaded.library


def status() -> Status:
    """What is active and why."""
    asked = choice()
    if asked == "plain":
        return Status(asked, "plain", "asked for")
    trouble = _load()
    if trouble is not None:
        return Status(asked, "plain", trouble)
    assert _loaded is not None
    bits = 8 * _loaded.library.grit_vector_bytes()
    return Status(asked, "fused", f"{_loaded.origin}, for vectors of {bits} bits: {_loaded.file}")


def _load() -> str | None:
    """Load once; the trouble, if there is any."""
    global _loaded, _trouble
    if _loaded is None and _trouble is None:
        try:
            _loaded = load_library()
        except KernelsUnavailable as error:
            _trouble = str(error)
            if choice() == "auto":
                print(f"grit: using the plain kernels, which are slower: {_trouble}", file=sys.stderr)
    return _trouble
