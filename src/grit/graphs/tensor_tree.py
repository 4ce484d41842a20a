"""Frozen records of tensors that move between devices and number types as one."""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, Self

import torch
from torch import Tensor


class TensorTree:
    """Base of the frozen dataclasses whose fields are tensors, other such records, or plain values."""

    def map_tensors(self, function: Callable[[Tensor], Tensor]) -> Self:
        """The same record with ``function`` applied to every tensor in it."""
        changes: dict[str, Any] = {}
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if isinstance(value, Tensor):
                changed: Any = function(value)
            elif isinstance(value, TensorTree):
                changed = value.map_tensors(function)
            else:
                continue
            if changed is not value:
                changes[field.name] = changed
        return replace(self, **changes) if changes else self  # type: ignore[type-var]

    def to(self, target: torch.device | str | torch.dtype, *, non_blocking: bool = False) -> Self:
        """Move to a device, or change the type of the floating-point tensors (integers keep theirs)."""
        if isinstance(target, torch.dtype):
            if not target.is_floating_point:
                raise TypeError(f"to(dtype) takes a floating-point type, got {target}")
            return self.map_tensors(lambda t: t.to(target) if t.is_floating_point() else t)
        return self.map_tensors(lambda t: t.to(target, non_blocking=non_blocking))

    def pin_memory(self) -> Self:
        """Copy into page-locked memory, from which a GPU reads without waiting."""
        return self.map_tensors(lambda t: t.pin_memory())
