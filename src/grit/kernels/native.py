"""Calling the compiled kernels: tensors go in as addresses within a structure that mirrors the C++ one field by field."""

import ctypes
from collections.abc import Sequence

import torch
from torch import Tensor

from grit.kernels.choice import library
from grit.kernels.dropout import threshold

SUFFIXES = {torch.float32: "float", torch.float64: "double"}


class Dropout(ctypes.Structure):
    """`Dropout` of ``cpp/vector.h``."""

    _fields_ = (("seed", ctypes.c_uint32), ("threshold", ctypes.c_uint32), ("scale", ctypes.c_double))

    @classmethod
    def of(cls, probability: float, seed: int) -> "Dropout":
        """Drop with that probability; 0 drops nothing."""
        return cls(seed, threshold(probability), 0.0 if probability == 1 else 1 / (1 - probability))


def integers(*names: str) -> list[tuple[str, type]]:
    """Fields of a structure."""
    return [(name, ctypes.c_int64) for name in names]


def pointers(*names: str) -> list[tuple[str, type]]:
    """Fields of a structure."""
    return [(name, ctypes.c_void_p) for name in names]


class Call:
    """A call being prepared; it keeps the tensors alive whose addresses the structure holds."""

    def __init__(self, structure: ctypes.Structure, dtype: torch.dtype) -> None:
        self.structure = structure
        self.suffix = SUFFIXES[dtype]
        self.kept: list[Tensor] = []

    def set(self, **tensors: Tensor | None) -> None:
        """Fill in addresses; None, and a tensor without elements, stay null."""
        for name, tensor in tensors.items():
            if tensor is None or tensor.numel() == 0:
                continue
            tensor = tensor.contiguous()
            self.kept.append(tensor)
            setattr(self.structure, name, tensor.data_ptr())

    def run(self, name: str) -> None:
        """Call the kernel of that name for this type of numbers."""
        kernels = library()
        assert kernels is not None
        getattr(kernels, f"{name}_{self.suffix}")(ctypes.byref(self.structure))


def empty_like(*tensors: Tensor | None) -> list[Tensor]:
    """One tensor for each, contiguous, without elements where there is none."""
    like = next(t for t in tensors if t is not None)
    return [like.new_empty(0) if t is None else t.new_empty(t.shape) for t in tensors]


def given(names: Sequence[str], grads: Sequence[Tensor], has: Sequence[bool]) -> dict[str, Tensor]:
    """Names of the gradients that are there, with them."""
    left = iter(grads)
    return {name: next(left) for name, there in zip(names, has, strict=True) if there}
