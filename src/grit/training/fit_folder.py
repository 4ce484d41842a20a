"""The folder of a fit: the table as a store, one trained model or several, and what was found out about them.

data/              the molecules as a store        calibration.json   what intervals and sets rest on
model/             the run of a single model       neighbours.npz     fingerprints of the training molecules
models/0 ...       the runs of several             predictions.csv    predictions of the molecules held out
fit.json           what was asked and inferred     comparison.json    metrics beside those of simple predictors
                                                   descriptors.npy    RDKit's descriptors, for those

fit.json is written before training, all below it afterwards, each whole or not at all. A process holds the lock ``.lock``.
Whatever a kill leaves, the same command with --resume goes on: models that are finished are not trained again, the one at
hand goes on from its last checkpoint (see `grit.training.run_folder`), and the files on the right are written again.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from grit.errors import GritError
from grit.files.ordinary_file import check_ordinary
from grit.files.whole_file import ENDING, write_text
from grit.graphs.store_place import tidy
from grit.training import calibration, neighbours
from grit.training.run_folder import LOCK, RunFolder, refuse_others

RECORD, PREDICTIONS, COMPARISON, DESCRIPTORS = "fit.json", "predictions.csv", "comparison.json", "descriptors.npy"
_FILES = (RECORD, PREDICTIONS, COMPARISON, DESCRIPTORS, calibration.FILE, neighbours.FILE)


class FitPlan(NamedTuple):
    """How many models are trained on what.

    Attributes:
        ensemble: Models that differ in their seeds, on each part of the data.
        folds: Parts of cross-validation; 0 for the table's own split.
        repeats: Times that cross-validation is done, with other parts.
        confidence: Of intervals and sets.
    """

    ensemble: int = 1
    folds: int = 0
    repeats: int = 1
    confidence: float = 0.9

    @property
    def is_single(self) -> bool:
        """Whether there is one model."""
        return self.ensemble == 1 and not self.folds


class FitRecord(BaseModel):
    """The content of ``fit.json``.

    Attributes:
        members: Folders of the models, relative to that of the fit.
        ensemble: See `FitPlan`, as are the next two.
        folds: See `FitPlan`.
        repeats: See `FitPlan`.
        asked: The rest of what was asked for.
        inferred: What was inferred from the table.
        notes: What is known about the data.
    """

    model_config = ConfigDict(frozen=True)

    members: tuple[str, ...] = Field(min_length=1)
    ensemble: int = 1
    folds: int = 0
    repeats: int = 1
    asked: dict[str, Any] = {}
    inferred: dict[str, Any] = {}
    notes: tuple[dict[str, str], ...] = ()

    def write(self, run: Path) -> None:
        """Write ``fit.json``."""
        write_text(run / RECORD, self.model_dump_json(indent=1) + "\n")


def read_record(run: Path) -> FitRecord | None:
    """What a fit was begun with; None if its folder does not say."""
    path = run / RECORD
    if not path.exists():
        return None
    try:
        record = FitRecord.model_validate_json(check_ordinary(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValidationError) as error:
        raise GritError(f"{str(path)!r} cannot be read: {error}") from None
    if any(not _is_member(name) for name in record.members):
        raise GritError(f"{str(path)!r} was changed or damaged: it names models that no fit makes.")
    return record


def fitted_models(run: Path) -> list[Path] | None:
    """The folders of the models of a fit; None if the folder is not that of a fit.

    Raises:
        GritError: If there are several and not all are finished.
    """
    if (run / "config.yaml").is_file():
        return None
    record = read_record(run)
    if record is None:
        return [run / "model"] if (run / "model" / "config.yaml").is_file() else None
    members = [run / name for name in record.members]
    missing = [each for each in members if RunFolder(each).state() != "finished"]
    if len(members) > 1 and missing:
        raise GritError(
            f"{len(missing)} of the {len(members)} models of the fit {str(run)!r} are not trained to the end ({missing[0]} is "
            "the first). Go on with grit fit --resume, or name a single model that is finished."
        )
    return members


def has_models(run: Path) -> bool:
    """Whether something was learned in the folder of a fit."""
    return any(each.has_work(resume=True) for each in _runs(run))


@contextmanager
def fit_folder(run: Path, *, resume: bool) -> Iterator[None]:
    """Hold the folder of a fit.

    A folder that was made here and in which nothing was learned is removed if the fit fails, so that the corrected command
    finds none.
    """
    folder = RunFolder(run)
    is_new = folder.state() == "new" and not run.exists()
    if not is_new:
        names = {path.name for path in run.iterdir()} - {LOCK, "data", "model", "models", *_FILES}
        refuse_others(run, sorted(name for name in names if not _is_left_by_a_kill(name)))
    for each in _runs(run):
        if each.state() in ("trained", "finished") and not resume:
            raise GritError(
                f"the run folder {str(run)!r} exists already. Go on with it by --resume, or name another with --run."
            )
        each.has_work(resume=True)
    with folder.held():
        tidy(run / "data")  # of a build that was killed after its store was in place
        try:
            yield
        except BaseException:
            if is_new and all(each.state() in ("new", "begun") for each in _runs(run)):
                shutil.rmtree(run, ignore_errors=True)
            raise


def check_same_plan(run: Path, plan: FitPlan) -> None:
    """Raise if models were trained by another plan."""
    if not has_models(run):
        return
    record = read_record(run)
    before = FitPlan() if record is None else FitPlan(record.ensemble, record.folds, record.repeats)
    changed = [name for name in ("ensemble", "folds", "repeats") if getattr(before, name) != getattr(plan, name)]
    if changed:
        raise GritError(
            f"the run {str(run)!r} was begun with another {', '.join(changed)}. Repeat the command as it was to go on, or begin "
            "a new run with --run."
        )


def _runs(run: Path) -> list[RunFolder]:
    """The folders of models that are there, and ``model`` in any case."""
    several = run / "models"
    if not several.is_dir():
        return [RunFolder(run / "model")]
    refuse_others(several, sorted(path.name for path in several.iterdir() if not _is_member(f"models/{path.name}")))
    return [RunFolder(run / "model"), *(RunFolder(path) for path in sorted(several.iterdir()))]


def _is_member(name: str) -> bool:
    return name == "model" or (name.startswith("models/") and name.removeprefix("models/").isdecimal())


def _is_left_by_a_kill(name: str) -> bool:
    is_file = name.endswith(ENDING) and any(name.startswith(f".{each}.") for each in _FILES)
    return is_file or name.startswith(".data.building-")
