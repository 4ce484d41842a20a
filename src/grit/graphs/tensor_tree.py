"""Frozen records of tensors that move between devices and number types as one."""

from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from typing import Any, Self

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree as pytree


class TensorTree:
    """Base of the frozen dataclasses whose fields are tensors, other such records, dictionaries of either, or plain values.

    Every subclass is a pytree: `torch.export`, `torch.func` and ``tree_map`` see its tensors.
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # Not `torch.export.register_dataclass`: that rebuilds a record through its constructor, whose checks do not
        # hold for what a pytree may carry, such as shapes or symbols in place of tensors.
        pytree.register_pytree_node(
            cls,
            _flatten,
            lambda values, names: _unflatten(cls, values, names),
            serialized_type_name=f"{cls.__module__}.{cls.__qualname__}",
            flatten_with_keys_fn=_flatten_with_keys,
        )

    def map_tensors(self, function: Callable[[Tensor], Tensor]) -> Self:
        """The same record with ``function`` applied to every tensor in it."""
        changes: dict[str, Any] = {}
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            changed = _mapped(value, function)
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


def _mapped(value: Any, function: Callable[[Tensor], Tensor]) -> Any:
    """A value of a record with ``function`` applied to every tensor in it; itself where nothing changed."""
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, TensorTree):
        return value.map_tensors(function)
    if isinstance(value, dict):
        mapped = {name: _mapped(each, function) for name, each in value.items()}
        return mapped if any(mapped[name] is not value[name] for name in value) else value
    return value


def has_values(tensor: Tensor) -> bool:
    """Whether a check can read the tensor: it is on CPU, and neither fake nor part of a trace."""
    return tensor.device.type == "cpu" and not torch.compiler.is_compiling() and not isinstance(tensor, FakeTensor)


Names = list[list[str]]  # of the fields that hold something, and of those that are None


def _flatten(tree: TensorTree) -> tuple[list[Any], Names]:
    content = {field.name: getattr(tree, field.name) for field in fields(tree)}  # type: ignore[arg-type]
    held = [name for name, value in content.items() if value is not None]
    return [content[name] for name in held], [held, [name for name in content if name not in held]]


def _flatten_with_keys(tree: TensorTree) -> tuple[list[tuple[Any, Any]], Names]:
    values, names = _flatten(tree)
    return [(pytree.GetAttrKey(name), value) for name, value in zip(names[0], values, strict=True)], names


def _unflatten(cls: type[TensorTree], values: Iterable[Any], names: Names) -> TensorTree:
    """The record again, whatever its values are now: nothing is checked."""
    tree = object.__new__(cls)
    held, absent = names
    for name, value in zip(held, values, strict=True):
        object.__setattr__(tree, name, value)
    for name in absent:
        object.__setattr__(tree, name, None)
    return tree
