"""Calling the compiled kernels: tensors go in as addresses within a structure that mirrors the C++ one field by field."""

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any, ClassVar

import torch
from torch import Tensor

from grit.errors import GritError
from grit.kernels.backend import loaded
from grit.kernels.dropout import threshold

SUFFIXES = {torch.float32: "float", torch.float64: "double"}


class Dropout(ctypes.Structure):
    """`Dropout` of ``cpp/vector.h``."""

    _fields_ = (("seed", ctypes.c_uint32), ("threshold", ctypes.c_uint32), ("scale", ctypes.c_double))

    @classmethod
    def of(cls, probability: float) -> "Dropout":
        """Drop with that probability; 0 drops nothing."""
        return cls(0, threshold(probability), 0.0 if probability == 1 else 1 / (1 - probability))


def integers(*names: str) -> list[tuple[str, type]]:
    """Fields of a structure."""
    return [(name, ctypes.c_int64) for name in names]


def pointers(*names: str) -> list[tuple[str, type]]:
    """Fields of a structure."""
    return [(name, ctypes.c_void_p) for name in names]


class Mirror(ctypes.Structure):
    """Base of the structures that stand for one of C++, whose size the library tells as ``grit_sizeof_NAME``."""

    cpp_name: ClassVar[str]


@cache
def _check_size(kind: type[Mirror]) -> None:
    tell = getattr(loaded(), f"grit_sizeof_{kind.cpp_name}")
    tell.restype = ctypes.c_int64
    if tell() != ctypes.sizeof(kind):
        raise GritError(
            f"the compiled kernels were made for another version of grit: their {kind.cpp_name} has {tell()} bytes, "
            f"expected {ctypes.sizeof(kind)}. GRIT_KERNELS=plain runs without them."
        )


class Call:
    """A call being prepared; it keeps the tensors alive whose addresses the structure holds."""

    def __init__(self, structure: Mirror, dtype: torch.dtype) -> None:
        _check_size(type(structure))
        self.structure = structure
        self.suffix = SUFFIXES[dtype]
        self.kept: list[Any] = []

    def set(self, **tensors: Tensor | None) -> None:
        """Fill in addresses; None stays null."""
        for name, tensor in tensors.items():
            if tensor is not None:
                whole = tensor.contiguous()
                self.kept.append(whole)
                setattr(self.structure, name, whole.data_ptr())  # null where there are no elements

    def set_table(self, name: str, tensors: Sequence[Tensor]) -> None:
        """Fill in the address of a table of addresses; a tensor without elements is null there."""
        rows = [tensor.contiguous() for tensor in tensors]
        table = (ctypes.c_void_p * len(rows))(*(tensor.data_ptr() for tensor in rows))
        self.kept += [rows, table]
        setattr(self.structure, name, ctypes.addressof(table))

    def run(self, name: str) -> None:
        """Call the kernel of that name for this type of numbers."""
        getattr(loaded(), f"{name}_{self.suffix}")(ctypes.byref(self.structure))
