"""Training the trials of a study one after the other, each of which may fail, be given up, or be interrupted."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from grit.errors import GritError, Interrupted, lacks_memory
from grit.files.whole_file import write_text
from grit.graphs.store import GraphStore
from grit.recipe.config import Recipe
from grit.recipe.load import changes_yaml
from grit.recipe.presets import preset_name
from grit.training.dotted import dotted
from grit.training.loop import Event
from grit.training.run_folder import RunFolder
from grit.training.train import RunOptions, train
from grit.training.tune_folder import RECIPE, forget_runs, trial_folder
from grit.training.tune_search import Pruning, suggest
from grit.training.tune_space import Space, override
from grit.training.tune_study import TuneStudy, TuneTrial

# Starts of a trial that end with the process, without a word: after so many the trial is given up, and not the study.
MAX_STARTS = 3
_NO_VALUE = "the metric could not be computed"


class _GivenUp(Exception):
    """Ends the training of a trial that does not look promising."""


class _TimeIsUp(Exception):
    """Ends the training of a trial that may go on later."""


class Trials:
    """The trials of a study.

    Args:
        study: With the trials so far.
        space: What is tuned.
        run: The folder of tuning.
        store: The molecules that trials may see.
        read: The recipe of the preset, with what is fixed and further changes.
    """

    def __init__(
        self, study: TuneStudy, space: Space, run: Path, store: GraphStore, read: Callable[..., Recipe]
    ) -> None:
        self.study, self.space, self.folder, self.store, self.read = study, space, run, store, read
        own = dotted(read().model_dump())
        self.own = {key: own.get(key) for key in space}

    def run(
        self,
        trials: int,
        seconds: float | None,
        options: RunOptions,
        watch: Callable[[Event], None] | None,
        say: Callable[[str], None],
    ) -> TuneStudy:
        """Train until all trials are done or the time is up."""
        started, spent = time.perf_counter(), self.study.seconds

        def is_over() -> bool:
            return seconds is not None and spent + time.perf_counter() - started >= seconds

        forget_runs(self.folder, self.study)
        try:
            while (trial := self._next(trials, say)) is not None:
                if is_over():
                    say(f"The time of {seconds:g} s is up. The same command with --resume and more --seconds goes on.")
                    break
                self._one(trial, trials, options, is_over, watch, say)
        except KeyboardInterrupt:
            raise Interrupted("interrupted; everything is saved.") from None
        return self.study

    def _one(
        self,
        trial: TuneTrial,
        trials: int,
        options: RunOptions,
        is_over: Callable[[], bool],
        watch: Callable[[Event], None] | None,
        say: Callable[[str], None],
    ) -> None:
        self._keep(trial)
        label = f"trial {trial.number} of {trials}"
        try:
            trial = self._trained(trial, options, is_over, _numbered(watch, trial.number - 1, trials))
        except (Interrupted, KeyboardInterrupt) as error:
            self._keep(self._seen(trial))
            raise Interrupted(f"{label}: {str(error) or 'interrupted; everything is saved.'}") from None
        self._keep(trial)
        forget_runs(self.folder, self.study)
        say(f"{label}: {self._outcome(trial)}")
        if trial.error == _NO_VALUE:
            raise GritError(
                f"{self.study.metric} could not be computed on the validation molecules (they may hold a single class), so "
                "trials cannot be compared. Choose another --split, or another metric (train.metric=NAME)."
            )

    def _next(self, trials: int, say: Callable[[str], None]) -> TuneTrial | None:
        """The trial to train, with its start counted; None if there is none."""
        running = [trial for trial in self.study.trials if trial.state == "running"]
        if running and running[0].starts >= MAX_STARTS:
            error = f"the process ended {MAX_STARTS} times while it was trained, perhaps for lack of memory"
            self._keep(running[0].model_copy(update={"state": "failed", "error": error}))
            return self._next(trials, say)
        if running:
            return running[0].model_copy(update={"starts": running[0].starts + 1})
        number = len(self.study.trials) + 1
        if number > trials:
            return None
        values: dict[str, Any] | None = self.own
        outside = [key for key, part in self.space.items() if not part.has(self.own[key])]
        if number == 1 and outside:
            say(
                f"The space does not have the preset's own {outside[0]} ({self.own[outside[0]]}), so the preset itself is not "
                "among the trials."
            )
        if number > 1 or outside:
            values = suggest(self.study, self.space)
        if values is None:
            say(f"Nothing new was found in the space after {number - 1} trials.")
            return None
        return TuneTrial(number=number, values=values, starts=1)

    def _trained(
        self, trial: TuneTrial, options: RunOptions, is_over: Callable[[], bool], watch: Callable[[Event], None] | None
    ) -> TuneTrial:
        """The trial with its result; still running if the time is up."""
        folder = RunFolder(trial_folder(self.folder, trial.number))
        try:
            recipe = self.read(*(override(key, value) for key, value in trial.values.items()))
            pruning = Pruning(self.study, self.space, recipe.train.epochs)
            for epoch, line in enumerate(folder.history()):  # of a trial that was interrupted
                if pruning.gives_up(epoch, line["val"][self.study.metric]) and epoch + 1 < recipe.train.epochs:
                    raise _GivenUp

            def look(event: Event) -> None:
                if watch is not None:
                    watch(event)
                if event.metrics and event.epoch + 1 < event.epochs:
                    if pruning.gives_up(event.epoch, event.metrics[self.study.metric]):
                        raise _GivenUp
                    if is_over():
                        raise _TimeIsUp

            train(recipe, folder.path, store=self.store, resume=True, options=options, watch=look)
        except _GivenUp:
            return self._seen(trial, state="pruned")
        except _TimeIsUp:
            return self._seen(trial)
        except Interrupted:
            raise
        except GritError as error:
            return self._seen(trial, state="failed", error=" ".join(str(error).split()))
        except (RuntimeError, MemoryError, OSError) as error:
            if not lacks_memory(error):
                raise
            return self._seen(trial, state="failed", error="not enough memory")
        found = self._seen(trial, state="complete")
        return found if self.study.value(found) is not None else self._seen(trial, state="failed", error=_NO_VALUE)

    def _seen(self, trial: TuneTrial, *, state: str = "running", error: str | None = None) -> TuneTrial:
        """A trial with what its run has written, after an orderly end."""
        lines = RunFolder(trial_folder(self.folder, trial.number)).history()
        return trial.model_copy(
            update={
                "state": state,
                "error": error,
                "starts": 0,
                "history": tuple(line["val"][self.study.metric] for line in lines),
                "seconds": lines[-1]["seconds"] if lines else 0.0,
            }
        )

    def _keep(self, trial: TuneTrial) -> None:
        """Write down what is known of a trial, and the recipe of the best."""
        self.study = self.study.replaced(trial)
        self.study.write(self.folder)
        best = self.study.ranking()[:1]
        if best:
            write_text(self.folder / RECIPE, tuned_recipe(self.study, best[0]))

    def _outcome(self, trial: TuneTrial) -> str:
        value, best = self.study.value(trial), self.study.ranking()[:1]
        epochs = f"{len(trial.history)} epochs"
        what = {
            "running": f"the time is up after {epochs}",
            "complete": f"best of {epochs}",
            "pruned": f"given up as worse than most after {epochs}",
            "failed": f"failed after {epochs} ({trial.error})",
        }[trial.state]
        found = "" if value is None else f"val {self.study.metric} {value:.4f}, "
        said = f"{found}{what}, {trial.seconds:.0f} s"
        return said if not best else f"{said}; the best so far is trial {best[0].number}"


def tuned_recipe(study: TuneStudy, trial: TuneTrial) -> str:
    """The text of a recipe with the values of a trial."""
    value = study.value(trial)
    assert value is not None
    values = [override(key, each) for key, each in trial.values.items()]
    # A seed belongs to a run: grit fit gives its own.
    text = changes_yaml(preset_name(study.preset), *study.overrides, *values)
    title = f"# Found by grit tune: trial {trial.number} of {len(study.trials)}, validation {study.metric} {value:.6g}."
    return f"{title}\n{text}"


def _numbered(watch: Callable[[Event], None] | None, number: int, trials: int) -> Callable[[Event], None] | None:
    return None if watch is None else lambda event: watch(replace(event, member=number, members=trials))
