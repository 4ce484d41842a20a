"""The type of an entry of the table `MODELS`."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_type_hints

from torch import nn

from grit.errors import GritError

RESERVED = ("name", "pairs")  # keys of ``model`` in a recipe that are not options of the model


@dataclass(frozen=True)
class ModelKind:
    """One entry of `MODELS`.

    Attributes:
        build: The class of the model, or a function that makes one; its result maps a `PairBatch` to predictions. It is called
            with ``schema`` and, where it has parameters of these names, with ``encoding`` and ``walk_steps`` of the batches and
            with statistics of the training set (entries of `STATISTICS`). All its other parameters are options: the keys that
            ``model:`` may have in a recipe, with their types and defaults.
        check: Called with all options; raises ValueError where they do not go together.
        encodings: Those it can read, entries of `ENCODINGS`; None for any.
        pairs: The kinds of pairs it can read, ``all``, ``edges`` or ``khop``; None for any.
        structures: All options -> what it reads of `STRUCTURES`, such as ``("rings-18",)``.
        levels: What it can predict for: ``graph``, ``node``, ``edge``.
        draws: Whether a prediction depends on random numbers in evaluation, too: then it is a `grit.models.blocks.Draws`.
        bound: A test of isomorphism that is known to tell apart whatever the model tells apart; None where none is known.
            ``1-WL`` (colour refinement) is claimed for the encoding ``none`` alone. ``GD-WL`` is claimed with the encoding of the
            pairs as distance. `grit reproduce expressivity` looks for pairs of graphs that break the claim.
    """

    build: Callable[..., nn.Module]
    check: Callable[[Mapping[str, Any]], None] | None = None
    encodings: tuple[str, ...] | None = None
    pairs: tuple[str, ...] | None = None
    structures: Callable[[Mapping[str, Any]], tuple[str, ...]] = lambda options: ()
    levels: tuple[str, ...] = ("graph", "node")
    draws: bool = False
    bound: Literal["1-WL", "GD-WL"] | None = None

    def check_batches(self, name: str, encoding: str, pairs: str) -> None:
        """Raise if the model cannot read batches with this encoding and these pairs."""
        if self.encodings is not None and encoding not in self.encodings:
            raise GritError(
                f"the model {name} reads the encoding {' or '.join(self.encodings)}, not {encoding}: "
                f"set encoding.name={self.encodings[0]}"
            )
        if self.pairs is not None and pairs.split("-")[0] not in self.pairs:
            raise GritError(
                f"the model {name} reads pairs of the kind {' or '.join(self.pairs)}, not {pairs}: set "
                f"model.pairs={self.pairs[0]}{'-3' if self.pairs[0] == 'khop' else ''}"
            )

    def check_level(self, name: str, level: str) -> None:
        """Raise if the model cannot predict at this level."""
        if level not in self.levels:
            able = " or ".join(f"{each}s" for each in self.levels)
            raise GritError(
                f"the model {name} predicts for {able}, not for {level}s: choose another with model.name=grit."
            )

    def parameters(self) -> dict[str, tuple[Any, Any]]:
        """Type and default of each parameter; the default is ``...`` where there is none."""
        called = self.build.__init__ if isinstance(self.build, type) else self.build  # type: ignore[misc]
        try:
            hints = get_type_hints(called, include_extras=True)
        except NameError as error:
            raise GritError(f"the types of its options must be known where it is defined: {error}.") from None
        signature = inspect.signature(self.build)
        for name, parameter in signature.parameters.items():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise GritError(f"it takes {parameter}: name its options one by one, so that a recipe can check them.")
            if name in RESERVED:
                raise GritError(f"its option {name!r} means something else in a recipe: give it another name.")
        return {
            name: (hints.get(name, Any), ... if parameter.default is parameter.empty else parameter.default)
            for name, parameter in signature.parameters.items()
        }
