"""The folder of tuning.

data/        the molecules as a store         trials.csv    a line per trial
study.json   every trial: values and result   recipe.yaml   that of the best trial, for grit fit --preset
trials/N     the run of trial N, as long as it is trained

All files are written whole or not at all after each trial, and a process holds the lock ``.lock``. Whatever a kill leaves, the
same command with --resume goes on: trials in ``study.json`` are not trained again, and the one at hand goes on from its last
checkpoint.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from grit.errors import GritError
from grit.files.whole_file import ENDING
from grit.graphs.store_place import tidy
from grit.training.run_folder import LOCK, RunFolder, refuse_others
from grit.training.tune_study import STUDY, TRIALS, TuneStudy, read_study

RECIPE = "recipe.yaml"
_FILES = (STUDY, TRIALS, RECIPE)


@contextmanager
def tune_folder(run: Path, *, resume: bool) -> Iterator[TuneStudy | None]:
    """Hold the folder of tuning; gives the study that was begun in it.

    A folder that was made here and in which no trial was begun is removed if tuning fails, so that the corrected command finds
    none.
    """
    folder = RunFolder(run)
    is_new = folder.state() == "new" and not run.exists()
    if not is_new:
        names = {path.name for path in run.iterdir()} - {LOCK, "data", "trials", *_FILES}
        refuse_others(run, sorted(name for name in names if not _is_left_by_a_kill(name)))
    with folder.held():
        study = read_study(run)
        if study is not None and study.trials and not resume:
            raise GritError(
                f"the folder {str(run)!r} holds {len(study.trials)} trials already. Go on with them by --resume, or name another "
                "folder with --run."
            )
        tidy(run / "data")  # of a build that was killed after its store was in place
        try:
            yield study
        except BaseException:
            if is_new and not (run / STUDY).exists():
                shutil.rmtree(run, ignore_errors=True)
            raise


def trial_folder(run: Path, number: int) -> Path:
    """Where a trial is trained."""
    return run / "trials" / str(number)


def forget_runs(run: Path, study: TuneStudy) -> None:
    """Remove the runs of all trials but one that goes on: what is worth knowing of the others is in the study."""
    kept = {str(trial.number) for trial in study.trials if trial.state == "running"}
    for path in (run / "trials").glob("*"):
        if path.name.isdecimal() and path.name not in kept:
            shutil.rmtree(path, ignore_errors=True)


def _is_left_by_a_kill(name: str) -> bool:
    is_file = name.endswith(ENDING) and any(name.startswith(f".{each}.") for each in _FILES)
    return is_file or name.startswith(".data.building-")
