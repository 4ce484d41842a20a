"""Tuning: which values of a recipe are best for a table, by training with many and looking at validation.

Every trial trains on the training part of the split that `grit.training.fit` has, and is judged on its validation part. The
test part is not given to a trial, so that it still measures what is chosen here.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from grit.datasets.own.molecule_tables import MoleculeTable
from grit.datasets.pipeline.write_store import RowProgress
from grit.errors import GritError
from grit.graphs.schema import OGB_ATOM, OGB_BOND, GraphSchema
from grit.recipe.config import Recipe
from grit.recipe.presets import preset_recipe
from grit.training.device import check_device
from grit.training.dotted import dotted
from grit.training.loop import Event
from grit.training.prepared_table import prepared_table, tell_prepared
from grit.training.train import RunOptions, check_splits, refuse_several_processes
from grit.training.tune_folder import RECIPE, tune_folder
from grit.training.tune_search import check_installed, importances
from grit.training.tune_space import Choices, Range, default_space, override, parse_space
from grit.training.tune_study import TuneStudy, TuneTrial, check_same_study
from grit.training.tune_trials import Trials

_DATA = "../../data"  # as seen from a trial, so that the folder of tuning may move


class TuneResult(NamedTuple):
    """What tuning gives.

    Attributes:
        study: All trials.
        best: The best of them on validation.
        recipe: The file with its values.
        importances: The share of each key in how good a trial was; None if there are too few trials.
    """

    study: TuneStudy
    best: TuneTrial
    recipe: Path
    importances: dict[str, float] | None


def tune(
    table: MoleculeTable,
    run: Path,
    *,
    trials: int = 20,
    seconds: float | None = None,
    preset: str = "default",
    overrides: Sequence[str] = (),
    space: Mapping[str, Any] | None = None,
    resume: bool = False,
    options: RunOptions | None = None,
    reading: AbstractContextManager[RowProgress] | None = None,
    watching: Callable[[str], AbstractContextManager[Callable[[Event], None]]] | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> TuneResult:
    """Look for the values of a recipe with the best validation metric on a table of molecules.

    Args:
        table: The table. Its seed is that of the models and of the search, too.
        run: The folder of tuning, see `grit.training.tune_folder`.
        trials: How many, those of earlier calls included. The first has the values of the preset, if the space has them.
        seconds: After which no trial goes on, those of earlier calls included; None for no limit.
        preset: ``fast``, ``default``, ``paper``, or the file of a recipe.
        overrides: Changes to the preset, which stay fixed.
        space: As `grit.training.tune_space.read_space` gives it; `SPACE` if not given.
        resume: Whether to go on with an existing folder.
        options: Device and workers.
        reading: Entered while molecules are read; gives what is told the number of rows done.
        watching: Called with the name of the metric and entered while trials are trained; gives what is told of every step.
        say: Told of what the user should know, a sentence at a time.
    """
    options = options or RunOptions()
    check_installed()
    refuse_several_processes("grit tune runs in one process: start it without torchrun.")
    check_device(options.device)
    if trials < 1 or (seconds is not None and not seconds > 0):
        raise GritError(f"expected at least 1 trial and more than 0 seconds, got {trials} and {seconds}.")
    schema = GraphSchema(node=OGB_ATOM, edge=OGB_BOND)
    fixed = [f"train.seed={table.seed}", *overrides]
    read = partial(preset_recipe, preset, schema, dataset=_DATA)
    recipe = read(*fixed)
    checked = checked_space(space, recipe, overrides, partial(read, *fixed))
    with tune_folder(run, resume=resume) as begun:
        with reading or nullcontext() as progress:
            has_trials = begun is not None and bool(begun.trials)
            store, made = prepared_table(table, run, begun=has_trials, made_by="tune", progress=progress, say=say)
        tell_prepared(table, run, store, again=made is None, say=say)
        seen = store.with_splits({name: store.split(name) for name in ("train", "val")})
        check_splits(seen)
        study = TuneStudy(
            metric=recipe.task(store.task).metric,
            preset=preset,
            overrides=tuple(overrides),
            recipe=dotted(recipe.model_dump(mode="json", exclude={"dataset", "plugins", "paper"})),
            space={key: part.plain() for key, part in checked.items()},
            seed=table.seed,
        )
        if begun is not None and begun.trials:
            check_same_study(begun, study, run)
            study = begun
        say(
            f"Trials learn from {seen.split('train').size:,} molecules and are compared by {study.metric} on "
            f"{seen.split('val').size:,} validation molecules. The test molecules are not looked at."
        )
        with watching(study.metric) if watching else nullcontext() as watch:
            study = Trials(study, checked, run, seen, partial(read, *fixed)).run(trials, seconds, options, watch, say)
        best = study.ranking()[:1]
        if not best:
            errors = [f" Trial {trial.number}: {trial.error}" for trial in study.trials if trial.error]
            raise GritError(f"no trial of {str(run)!r} has a result.{''.join(errors[:1])}")
        return TuneResult(study, best[0], run / RECIPE, importances(study, checked))


def checked_space(
    space: Mapping[str, Any] | None, recipe: Recipe, overrides: Sequence[str], read: Callable[..., Recipe]
) -> dict[str, Range | Choices]:
    """The space of a study, every end of which the recipe takes.

    Args:
        space: As `grit.training.tune_space.read_space` gives it; `SPACE` if not given.
        recipe: That of the preset with what is fixed.
        overrides: What is fixed.
        read: The same recipe with further changes.
    """
    fixed = [each.partition("=")[0].strip() for each in overrides]

    def accepts(key: str, value: Any) -> bool:
        try:
            read(override(key, value))
        except GritError:
            return False
        return True

    if space is None:
        return default_space(recipe, fixed, accepts)
    parsed = parse_space(space, recipe, fixed, "the space")
    for key, part in parsed.items():
        for value in part.ends():
            try:
                read(override(key, value))
            except GritError as error:
                raise GritError(f"the space: {error}") from None
    return parsed
