"""The models of a fit: which seeds and which parts of the data each has, and their training one after the other."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from grit.errors import GritError, Interrupted
from grit.graphs.chunk import Array
from grit.graphs.store import GraphStore
from grit.recipe.config import Recipe
from grit.training.fit_folder import FitPlan
from grit.training.loop import Event
from grit.training.train import RunOptions, train

# So that fits with the seeds 0, 1, 2 ... do not share models.
_SEED_STEP = 1000


class Member(NamedTuple):
    """One model of a fit.

    Attributes:
        name: Its folder, relative to that of the fit.
        seed: Of its weights and shuffling.
        splits: What it learns from and is tested on; None for the store's own splits.
        repeat: Which time of cross-validation, from 0.
        fold: Which part is held out, from 0.
        number: Which model of those that differ in their seeds alone, from 0.
    """

    name: str
    seed: int
    splits: Mapping[str, Array] | None = None
    repeat: int = 0
    fold: int = 0
    number: int = 0

    def store(self, store: GraphStore) -> GraphStore:
        """The molecules, divided as this model has them."""
        return store if self.splits is None else store.with_splits(self.splits)


def members_of(plan: FitPlan, seed: int, parts: Sequence[Sequence[Mapping[str, Array]]] = ()) -> list[Member]:
    """All models of a fit, in the order of their training.

    Args:
        plan: How many.
        seed: Of the first.
        parts: The splits of every fold of every repeat; empty without cross-validation.
    """
    if plan.is_single:
        return [Member("model", seed)]
    places: list[tuple[int, int, Mapping[str, Array] | None]] = [(0, 0, None)]
    if parts:
        places = [(repeat, fold, each) for repeat, folds in enumerate(parts) for fold, each in enumerate(folds)]
    return [
        Member(f"models/{count}", (seed + _SEED_STEP * count) % 2**63, splits, repeat, fold, number)
        for count, ((repeat, fold, splits), number) in enumerate(
            (place, number) for place in places for number in range(plan.ensemble)
        )
    ]


def check_members(members: Sequence[Member], store: GraphStore) -> None:
    """Raise if a part to learn from has no value of some target."""
    for member in members:
        if member.splits is None:
            continue
        known = np.isfinite(store.targets(member.splits["train"]).astype(np.float64)).any(0)
        if not known.all():
            name = store.task.targets[int(np.argmin(known))]
            raise GritError(
                f"no molecule outside fold {member.fold + 1} has a value of {name!r}, so that nothing could be learned of it. "
                "Take fewer folds (--folds), or leave that target out."
            )


def train_members(
    members: Sequence[Member],
    recipe: Recipe,
    run: Path,
    store: GraphStore,
    *,
    resume: bool,
    options: RunOptions,
    watch: Callable[[Event], None] | None,
    say: Callable[[str], None],
) -> list[dict[str, Any]]:
    """Train all models; what is finished is not trained again.

    Args:
        members: Which.
        recipe: Of all; each has its own seed.
        run: The folder of the fit.
        store: The molecules.
        resume: Whether to go on with what is there.
        options: Device, workers, loggers.
        watch: Told of every step, and of which model it is.
        say: Told of what the user should know, a sentence at a time.

    Returns:
        The content of ``result.json`` of each.
    """
    results = []
    for count, member in enumerate(members):
        label = "" if len(members) == 1 else f"model {count + 1} of {len(members)}: "
        seeded = recipe.model_copy(update={"train": recipe.train.model_copy(update={"seed": member.seed})})
        try:
            results.append(
                train(
                    seeded,
                    run / member.name,
                    store=member.store(store),
                    resume=resume,
                    options=options,
                    watch=_numbered(watch, count, len(members)),
                    say=_prefixed(say, label),
                )
            )
        except Interrupted as error:
            raise Interrupted(f"{label}{error}") from None
        except GritError as error:
            raise GritError(f"{label}{error}") from error
    return results


def _numbered(watch: Callable[[Event], None] | None, count: int, total: int) -> Callable[[Event], None] | None:
    return None if watch is None else lambda event: watch(replace(event, member=count, members=total))


def _prefixed(say: Callable[[str], None], label: str) -> Callable[[str], None]:
    return lambda line: say(f"{label}{line}")
