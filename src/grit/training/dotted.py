"""A configuration as dotted keys: ``{"train": {"lr": 1}}`` is ``{"train.lr": 1}``."""

from collections.abc import Mapping
from typing import Any


def dotted(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The values of a tree by their dotted keys."""
    found: dict[str, Any] = {}
    for key, value in tree.items():
        found |= dotted(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return found


def different_keys(*trees: Mapping[str, Any]) -> list[str]:
    """The dotted keys whose values are not the same in all of some trees of `dotted`."""
    every = {key: None for tree in trees for key in tree}
    missing = object()
    return [key for key in every if any(tree.get(key, missing) != trees[0].get(key, missing) for tree in trees)]
