"""Which keys of a recipe are tuned, and between which values.

A key has a `Range` of numbers or `Choices`. `SPACE` is the table that is used unless a file says otherwise. Such a file is YAML:

    train.lr: {low: 1e-4, high: 1e-2, log: true}
    model.num_layers: {low: 2, high: 8}
    model.dropout: {low: 0, high: 0.5, step: 0.1}
    model.hidden_dim: [32, 64, 128]
"""

import json
from collections.abc import Callable, Iterable, Mapping
from math import isfinite, log10
from pathlib import Path
from typing import Any, NamedTuple

from grit.errors import GritError, shown
from grit.recipe.bounded_yaml import read_yaml
from grit.recipe.config import Recipe
from grit.training.dotted import dotted

_DIGITS = 3  # of a drawn number: more would be noise in a recipe
_NOT_TUNED = {
    "train.seed": "a seed that does well by luck says nothing about new molecules",
    "train.metric": "trials with different metrics cannot be compared",
    "train.max_seconds": "the result would depend on the speed of the machine",
    "dataset": "it is the table",
    "plugins": "name them with --plugin",
}


class Range(NamedTuple):
    """Numbers from ``low`` to ``high``, both included.

    Attributes:
        low: The smallest.
        high: The largest.
        log: Whether factors count alike: 1e-4 to 1e-3 as much as 1e-3 to 1e-2.
        step: Between neighbouring numbers; None for any number.
    """

    low: float
    high: float
    log: bool = False
    step: float | None = None

    @property
    def is_whole(self) -> bool:
        """Whether its numbers are whole."""
        return all(isinstance(each, int) for each in (self.low, self.high, self.step or 1))

    def ends(self) -> tuple[Any, ...]:
        """Values that a recipe must accept for it to accept all."""
        return self.low, self.high

    def has(self, value: Any) -> bool:
        """Whether a value is in it."""
        if not _is_number(value) or not self.low <= value <= self.high:
            return False
        steps = (value - self.low) / (self.step or 1)
        return (self.step is None and not self.is_whole) or abs(steps - round(steps)) < 1e-9

    def tidy(self, value: Any) -> Any:
        """A drawn number as a recipe has it: with a few digits, and inside."""
        if self.is_whole:
            return round(value)
        rounded = round(value, 9) if self.step is not None else _rounded(value)
        return min(max(rounded, self.low), self.high)

    def plain(self) -> Any:
        """As a file of a space has it."""
        return {name: value for name, value in self._asdict().items() if value is not None and value is not False}


class Choices(NamedTuple):
    """Values of which each may be chosen; ``values`` has at least two."""

    values: tuple[Any, ...]

    def ends(self) -> tuple[Any, ...]:
        """All values."""
        return self.values

    def has(self, value: Any) -> bool:
        """Whether a value is one of them."""
        return value in self.values

    def tidy(self, value: Any) -> Any:
        """The value itself."""
        return value

    def plain(self) -> Any:
        """As a file of a space has it."""
        return list(self.values)


Space = Mapping[str, Range | Choices]
Around = Callable[[Any], Range | Choices | None]


def factors(*each: float) -> Around:
    """Whole numbers: the preset's own value times each of these."""
    return lambda value: Choices(tuple(sorted({max(1, round(value * factor)) for factor in each})))


def whole_times(low: float, high: float) -> Around:
    """Whole numbers from ``low`` to ``high`` times the preset's own value."""
    return lambda value: Range(max(1, round(value * low)), max(2, round(value * high)))


def times(low: float, high: float) -> Around:
    """Numbers from ``low`` to ``high`` times the preset's own value, in which factors count alike."""
    return lambda value: Range(_rounded(value * low), _rounded(value * high), log=True) if value > 0 else None


def between(low: float, high: float) -> Around:
    """Numbers between two, and up to the preset's own value if that is outside."""
    return lambda value: Range(min(low, float(value)), max(high, float(value)))


# The space of `grit tune`, by key of the recipe, around the value that the preset has.
SPACE: dict[str, Around] = {
    "encoding.walk_steps": factors(0.5, 1, 1.5),
    "model.num_layers": whole_times(0.5, 1.5),
    "model.hidden_dim": factors(0.5, 1, 2),
    "model.dropout": between(0.0, 0.4),
    "model.attention_dropout": between(0.0, 0.5),
    "train.lr": times(0.2, 5.0),
    "train.weight_decay": times(0.1, 1000.0),
    "train.batch_size": factors(0.5, 1, 2),
}


def default_space(
    recipe: Recipe, fixed: Iterable[str], accepts: Callable[[str, Any], bool]
) -> dict[str, Range | Choices]:
    """`SPACE` for a recipe, without what its model does not have and what is fixed.

    Args:
        recipe: That of the preset, with what is fixed.
        fixed: Keys that have the value that the user said.
        accepts: Whether the recipe may have a value at a key.
    """
    own, found = dotted(recipe.model_dump()), {}
    for key, around in SPACE.items():
        if key not in own or key in fixed or own[key] is None:
            continue
        part = around(own[key])
        if isinstance(part, Choices):  # a width that does not divide into the heads, for example
            part = Choices(tuple(value for value in part.values if accepts(key, value)))
            part = part if len(part.values) > 1 else None
        if part is not None and all(accepts(key, value) for value in part.ends()):
            found[key] = part
    if not found:
        raise GritError(
            "nothing is left to tune: every key of the space has a fixed value. Name others with --space FILE."
        )
    return found


def read_space(path: Path) -> dict[str, Any]:
    """The content of the file of a space, as `parse_space` takes it."""
    tree = read_yaml(path, "space")
    if not isinstance(tree, dict) or not tree:
        raise GritError(f"space {str(path)!r}: expected keys of a recipe, such as {_EXAMPLE}, got {shown(tree)}.")
    return tree


def parse_space(
    tree: Mapping[str, Any], recipe: Recipe, fixed: Iterable[str], where: str
) -> dict[str, Range | Choices]:
    """A checked space. Whether the recipe takes its values is for the caller to try.

    Args:
        tree: A list of values, or ``low``, ``high``, and perhaps ``log`` and ``step``, by key of the recipe.
        recipe: That of the preset; where it has a fraction, a range has fractions.
        fixed: Keys that have the value that the user said.
        where: What the space is, for errors.
    """
    own = dotted(recipe.model_dump())
    for key in tree:
        if key in _NOT_TUNED:
            raise GritError(f"{where}: {key} is not tuned: {_NOT_TUNED[key]}.")
        if key in fixed:
            raise GritError(f"{where}: {key} has a range, and a fixed value among the options; keep one of them.")
    return {key: _part(value, own.get(key), f"{where}: {key}") for key, value in tree.items()}


def override(key: str, value: Any) -> str:
    """As the command line takes it."""
    return f"{key}={json.dumps(value, ensure_ascii=False)}"


_EXAMPLE = "train.lr: {low: 1e-4, high: 1e-2, log: true} or model.hidden_dim: [32, 64]"


def _part(value: Any, own: Any, where: str) -> Range | Choices:
    if isinstance(value, list):
        return _choices(value, where)
    if not isinstance(value, Mapping):
        raise GritError(f"{where}: expected a range or a list of values, such as {_EXAMPLE}, got {shown(value)}.")
    unknown = [name for name in value if name not in Range._fields]
    if unknown:
        hint = " Keys of a recipe are written with dots, such as train.lr." if "low" not in value else ""
        raise GritError(f"{where}: unknown key {shown(unknown[0])}; a range has low, high, log and step.{hint}")
    for name in ("low", "high", "step"):
        if name not in value and name != "step":
            raise GritError(f"{where}: {name} is missing; a range is written as {{low: 1, high: 8}}.")
        if name in value and not (_is_number(value[name]) and isfinite(value[name])):
            raise GritError(f"{where}: {name}: expected a number, got {shown(value[name])}.")
    low, high, log, step = value["low"], value["high"], value.get("log", False), value.get("step")
    if not isinstance(log, bool):
        raise GritError(f"{where}: log: expected true or false, got {shown(log)}.")
    if isinstance(own, float):  # {low: 0, high: 1} of a fraction does not mean 0 or 1
        low, high = float(low), float(high)
    if low >= high:
        raise GritError(f"{where}: low must be less than high, got {low} and {high}.")
    if log and low <= 0:
        raise GritError(f"{where}: log needs a low above 0, got {low}.")
    if step is not None and (log or not 0 < step <= high - low):
        raise GritError(
            f"{where}: step: expected a number above 0 that fits between low and high, without log, got {step}."
        )
    return Range(low, high, log, step)


def _choices(values: list[Any], where: str) -> Choices:
    if not all(value is None or isinstance(value, str | int | float) for value in values):
        raise GritError(f"{where}: expected plain values, such as [32, 64], got {shown(values)}.")
    texts = [json.dumps(value) for value in values]
    twice = [text for number, text in enumerate(texts) if text in texts[:number]]
    if twice or len(values) < 2:
        raise GritError(
            f"{where}: expected at least two different values, got {shown(values)}. A fixed value is given as key=value."
        )
    return Choices(tuple(values))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _rounded(value: float) -> float:
    return float(value) if value == 0 else round(float(value), _DIGITS - 1 - int(log10(abs(value)) // 1))
