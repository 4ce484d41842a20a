"""Calling the compiled kernels: tensors go in as addresses within a structure that mirrors the C++ one field by field."""

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from grit.errors import GritError
from grit.kernels.choice import loaded
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
        self.kept: list[Any] = []

    def set(self, **tensors: Tensor | None) -> None:
        """Fill in addresses; None stays null."""
        structure, keep = self.structure, self.kept.append
        for name, tensor in tensors.items():
            if tensor is not None:
                if not tensor.is_contiguous():
                    tensor = tensor.contiguous()
                keep(tensor)
                setattr(structure, name, tensor.data_ptr())  # null where there are no elements

    def require(self, **tensors: Tensor | None) -> None:
        """`set` for what must be there."""
        missing = [name for name, tensor in tensors.items() if tensor is None]
        if missing:
            raise GritError(f"the fused kernels need {', '.join(missing)}; GRIT_KERNELS=plain runs without.")
        self.set(**tensors)

    def set_table(self, name: str, tensors: Sequence[Tensor | None]) -> None:
        """Fill in the address of a table of addresses; None is null there."""
        rows = [t if t is None or t.is_contiguous() else t.contiguous() for t in tensors]
        table = (ctypes.c_void_p * len(rows))(*(None if t is None else t.data_ptr() for t in rows))
        self.kept += [rows, table]
        setattr(self.structure, name, ctypes.addressof(table))

    def run(self, name: str) -> None:
        """Call the kernel of that name for this type of numbers."""
        getattr(loaded(), f"{name}_{self.suffix}")(ctypes.byref(self.structure))


def empty_like(*tensors: Tensor | None) -> list[Tensor]:
    """One tensor for each, contiguous, without elements where there is none."""
    like = next(t for t in tensors if t is not None)
    return [like.new_empty(0) if t is None else t.new_empty(t.shape) for t in tensors]


_LIBRARY = torch.library.Library("grit", "DEF")  # type: ignore[no-untyped-call]

Function = Callable[..., Any]


def operator(
    *, fake: Function, backward: Function | None = None, constants: Sequence[int] = ()
) -> Callable[[Function], Function]:
    """Make a torch operator ``grit::NAME`` of a function of that name with typed arguments, tensors first, options last.

    It is what `torch.library.custom_op` makes, with less work per call, which counts for operators of a millisecond.

    Args:
        fake: The same on tensors without storage, for the compiler and the exporter.
        backward: An operator: (gradients of the outputs, None where there is none; the tensors; the outputs; the options) ->
            gradients of the first tensors; those that have none come last.
        constants: Positions of outputs that have no gradient.
    """

    def define(compute: Function) -> Function:
        name = compute.__name__
        schema = torch.library.infer_schema(compute, mutates_args=())
        _LIBRARY.define(name + schema)  # type: ignore[no-untyped-call]
        _LIBRARY.impl(name, compute, "CPU")  # type: ignore[no-untyped-call]
        torch.library.register_fake(f"grit::{name}", fake, lib=_LIBRARY)
        made: Function = getattr(torch.ops.grit, name).default
        if backward is not None:
            derivative = _derivative(made, backward, schema.partition("->")[0].count("Tensor"), constants)

            def differentiable(*arguments: Any) -> Any:
                if torch.is_grad_enabled():
                    return derivative.apply(*arguments)  # type: ignore[no-untyped-call]
                return _below_autograd(made, *arguments)

            _LIBRARY.impl(name, differentiable, "Autograd")  # type: ignore[no-untyped-call]
        return made

    return define


def _derivative(
    made: Function, backward: Function, num_tensors: int, constants: Sequence[int]
) -> type[torch.autograd.Function]:
    class Derivative(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            outputs = tuple(_below_autograd(made, *inputs))
            ctx.save_for_backward(*inputs[:num_tensors], *outputs)
            ctx.options = inputs[num_tensors:]
            ctx.set_materialize_grads(False)
            ctx.mark_non_differentiable(*(outputs[number] for number in constants))
            return outputs

        @staticmethod
        def backward(ctx: Any, *grads: Tensor | None) -> Any:
            tensors, outputs = ctx.saved_tensors[:num_tensors], ctx.saved_tensors[num_tensors:]
            found = backward(list(grads), tensors, outputs, *ctx.options)
            needed = ctx.needs_input_grad
            return *(g if n else None for g, n in zip(found, needed, strict=False)), *[None] * (
                len(needed) - len(found)
            )

    return Derivative


def _below_autograd(made: Function, *arguments: Any) -> Any:
    """An operator's own computation, from within its derivative's forward pass."""
    with torch._C._AutoDispatchBelowAutograd():
        return made(*arguments)
