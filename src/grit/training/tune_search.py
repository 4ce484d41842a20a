"""What optuna does for tuning: which values to try next, when to give a trial up, and which keys mattered.

All of it is computed from the record of the trials, with random numbers that depend on the seed and the number of the trial
alone. So a study that was interrupted goes on as if nothing had happened, and the record is the only file.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from grit.training.tune_space import Choices, Range, Space
from grit.training.tune_study import TuneStudy, TuneTrial

if TYPE_CHECKING:
    import optuna

# Trials drawn at random before the search learns from them, and finished ones before one is given up.
RANDOM_TRIALS, UNPRUNED_TRIALS = 8, 4
# Of the epochs, in which nothing is given up: the learning rate still rises.
UNPRUNED_EPOCHS = 0.2
# A ranking of keys from fewer trials would be noise.
MIN_FOR_IMPORTANCE = 10
_ATTEMPTS = 60  # at values that were not tried yet


def check_installed() -> None:
    """Raise if optuna is missing, before any work."""
    import optuna  # noqa: F401


def suggest(study: TuneStudy, space: Space) -> dict[str, Any] | None:
    """Values for the next trial; None if none can be found that were not tried.

    Args:
        study: With the trials so far.
        space: Which keys, and between which values.
    """
    import optuna

    tried = [trial.values for trial in study.trials]
    for attempt in range(_ATTEMPTS):
        seed = int(np.random.SeedSequence([study.seed, len(study.trials), attempt]).generate_state(1)[0])
        # In a small space the search may insist on what is best so far.
        few = attempt < _ATTEMPTS // 2
        sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=RANDOM_TRIALS)
        filled = _filled(study, space, sampler if few else optuna.samplers.RandomSampler(seed=seed))
        drawn = filled.ask(_distributions(space)).params
        values = {key: part.tidy(drawn[key]) for key, part in space.items()}
        if values not in tried:
            return values
    return None


class Pruning:
    """Whether a trial is worth going on with: not if its best is worse than the median of the others at that epoch.

    Args:
        study: With the trials before.
        space: Of the study.
        epochs: That a trial may have.
    """

    def __init__(self, study: TuneStudy, space: Space, epochs: int) -> None:
        import optuna

        others = study.model_copy(update={"trials": tuple(each for each in study.trials if each.state != "running")})
        pruner = optuna.pruners.MedianPruner(UNPRUNED_TRIALS, n_warmup_steps=int(UNPRUNED_EPOCHS * epochs))
        self._trial = _filled(others, space, optuna.samplers.RandomSampler(seed=0), pruner).ask()
        self._told: set[int] = set()

    def gives_up(self, epoch: int, value: float) -> bool:
        """Whether to end after this epoch, counted from 0; to be told of every one."""
        if epoch not in self._told:  # one that was trained again after a kill
            self._told.add(epoch)
            self._trial.report(value, epoch)
        return self._trial.should_prune()


def importances(study: TuneStudy, space: Space) -> dict[str, float] | None:
    """The share of each key in how good a trial was, the largest first (PED-ANOVA); None if there are too few trials."""
    import optuna

    # One that was given up is not among the best, which is all that counts here.
    ended = [each for each in study.trials if each.state in ("complete", "pruned") and study.value(each) is not None]
    if len(ended) < MIN_FOR_IMPORTANCE:
        return None
    known = study.model_copy(update={"trials": tuple(each.model_copy(update={"state": "complete"}) for each in ended)})
    found = optuna.importance.get_param_importances(
        _filled(known, space, optuna.samplers.RandomSampler(seed=0)),
        evaluator=optuna.importance.PedAnovaImportanceEvaluator(),
    )
    return dict(sorted(found.items(), key=lambda each: -each[1]))


def _filled(
    study: TuneStudy,
    space: Space,
    sampler: "optuna.samplers.BaseSampler",
    pruner: "optuna.pruners.BasePruner | None" = None,
) -> "optuna.Study":
    """A study of optuna's in memory with the trials that ended."""
    import optuna

    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)  # it announces every study
    try:
        direction = optuna.study.StudyDirection.MINIMIZE if study.sign > 0 else optuna.study.StudyDirection.MAXIMIZE
        filled = optuna.create_study(direction=direction, sampler=sampler, pruner=pruner)
    finally:
        optuna.logging.set_verbosity(verbosity)
    filled.add_trials(_frozen(study, space, [each for each in study.trials if each.state != "running"]))
    return filled


def _frozen(study: TuneStudy, space: Space, trials: Sequence[TuneTrial]) -> "list[optuna.trial.FrozenTrial]":
    import optuna

    states = {
        "complete": optuna.trial.TrialState.COMPLETE,
        "pruned": optuna.trial.TrialState.PRUNED,
        "failed": optuna.trial.TrialState.FAIL,
    }
    distributions = _distributions(space)
    return [
        optuna.trial.create_trial(
            state=states[trial.state],
            value=study.value(trial) if trial.state == "complete" else None,
            params=trial.values,
            distributions=distributions,
            intermediate_values=dict(enumerate(trial.history)),
        )
        for trial in trials
    ]


def _distributions(space: Space) -> "dict[str, optuna.distributions.BaseDistribution]":
    return {key: _distribution(part) for key, part in space.items()}


def _distribution(part: Range | Choices) -> "optuna.distributions.BaseDistribution":
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(part, Choices):
        return CategoricalDistribution(part.values)
    high = part.high
    if part.step is not None:  # the last step may not reach it
        low, top, step = (Decimal(repr(each)) for each in (part.low, part.high, part.step))
        high = type(part.high)(low + (top - low) // step * step)
    if part.is_whole:
        return IntDistribution(int(part.low), int(high), part.log, int(part.step or 1))
    return FloatDistribution(float(part.low), float(high), part.log, part.step)
