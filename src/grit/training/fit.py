"""From a table of SMILES to a trained predictor, with simple predictors beside it for comparison."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from grit.datasets.own.molecule_tables import MoleculeStore, MoleculeTable
from grit.datasets.pipeline.write_store import RowProgress
from grit.errors import GritError
from grit.graphs.chunk import Array
from grit.graphs.schema import OGB_ATOM, OGB_BOND, GraphSchema
from grit.graphs.store import GraphStore
from grit.graphs.store_format import read_manifest
from grit.graphs.store_place import tidy
from grit.learning.task import Task
from grit.recipe.presets import preset_recipe
from grit.training.device import check_device
from grit.training.forest import constant_outputs, forest_outputs
from grit.training.loggers import RunLog
from grit.training.loop import Event
from grit.training.run_folder import LOCK, RunFolder, refuse_others
from grit.training.train import RunOptions, refuse_several_processes, train

_MADE_BY = "fit"


class Comparison(NamedTuple):
    """Metrics on the test split: of the model, and of simple predictors."""

    model: dict[str, float]
    constant: dict[str, float]
    forest: dict[str, float] | None


class FitResult(NamedTuple):
    """What a fit gives: the content of ``result.json``, the comparison, and how many rows could not be used."""

    result: dict[str, Any]
    comparison: Comparison
    skipped: int


def fit(
    table: MoleculeTable,
    run: Path,
    *,
    preset: str = "default",
    overrides: Sequence[str] = (),
    resume: bool = False,
    with_forest: bool = True,
    options: RunOptions | None = None,
    reading: AbstractContextManager[RowProgress] | None = None,
    watching: Callable[[str], AbstractContextManager[Callable[[Event], None]]] | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> FitResult:
    """Train a predictor on a table of molecules, and compare it with simple ones on its test split.

    Args:
        table: The table. Its seed is that of the model, too.
        run: The run folder: the table becomes a store in ``data``, the model is in ``model``.
        preset: ``fast``, ``default`` or ``paper``.
        overrides: Changes to the preset.
        resume: Whether to go on with an existing folder.
        with_forest: Whether to compare with a random forest on fingerprints.
        options: Device, workers, loggers.
        reading: Entered while molecules are read; gives what is told the number of rows done.
        watching: Called with the name of the metric and entered while the model is trained; gives what is told of every step.
        say: Told of what the user should know, a sentence at a time.
    """
    options = RunOptions() if options is None else options
    refuse_several_processes(
        "grit fit runs in one process: start it without torchrun. To train with several, make a store of the table "
        "(grit.datasets.from_csv(..., out=STORE)), then start grit train own-default dataset=STORE with torchrun."
    )
    # An error in any of these before the work, not after it.
    check_device(options.device)
    RunLog(options.log)
    schema = GraphSchema(node=OGB_ATOM, edge=OGB_BOND)
    recipe = preset_recipe(preset, schema, f"train.seed={table.seed}", *overrides, dataset=str(run / "data"))
    with fit_folder(run, resume=resume):
        with reading or nullcontext() as progress:
            store, fingerprints = _prepared(table, run, with_forest, progress, say)
        sizes = ", ".join(f"{members.size:,} {name}" for name, members in store.splits.items())
        say(f"{len(store):,} molecules ({sizes}; split: {table.split}; override with --split, --task, --smiles)")
        if store.manifest.skipped:
            say(f"{store.manifest.skipped:,} rows could not be used; {run / 'data' / 'skipped.csv'} says why")
        with watching(recipe.task(store.task).metric) if watching else nullcontext() as watch:
            result = train(recipe, run / "model", store=store, resume=resume, options=options, watch=watch, say=say)
        if with_forest and fingerprints is None:  # the molecules were read by an earlier process
            fingerprints = table.fingerprints_of(store)
        compared = compare(store, result.get("test", {}), fingerprints, table.seed)
    return FitResult(result, compared, store.manifest.skipped)


def _prepared(
    table: MoleculeTable, run: Path, with_fingerprints: bool, progress: RowProgress | None, say: Callable[[str], None]
) -> MoleculeStore:
    """The table as a store inside the run folder.

    One that is there already is used if it was made of the same table in the same way. If not, it is made again, unless a
    model has been trained on it, or another command made it: then that is an error.
    """
    out = run / "data"
    trained = RunFolder(run / "model").has_work(resume=True)
    if trained or out.exists():
        try:
            store = GraphStore.open(out)
            _check_same(store, run, table)
        except GritError:
            if trained:
                raise
            _check_made_by_fit(out)
        else:
            return MoleculeStore(store, None)
    return table.to_store(
        out, overwrite=True, made_by=_MADE_BY, with_fingerprints=with_fingerprints, progress=progress, say=say
    )


@contextmanager
def fit_folder(run: Path, *, resume: bool) -> Iterator[None]:
    """Hold the folder of a fit: its table as a store in ``data``, its model in ``model``.

    Whatever a kill leaves can be gone on with, or begun again if nothing was learned yet. A folder that was made here and
    in which nothing was learned is removed if the fit fails, so that the corrected command finds none.
    """
    folder, model = RunFolder(run), RunFolder(run / "model")
    is_new = folder.state() == "new" and not run.exists()
    if not is_new:
        names = {path.name for path in run.iterdir()} - {LOCK, "data", "model"}
        refuse_others(run, sorted(name for name in names if not name.startswith(".data.building-")))
    model.has_work(resume=resume)
    with folder.held():
        tidy(run / "data")  # of a build that was killed after its store was in place
        try:
            yield
        except BaseException:
            if is_new and model.state() in ("new", "begun"):
                shutil.rmtree(run, ignore_errors=True)
            raise


def _check_made_by_fit(out: Path) -> None:
    """Raise if a store that stands in the way was made by something else."""
    try:
        is_ours = read_manifest(out).built.get("made_by") == _MADE_BY
    except GritError:
        is_ours = out.is_dir() and not any(out.iterdir())
    if not is_ours:
        raise GritError(
            f"{str(out)!r} was not made by grit fit, so it is not replaced. Move it away, or name another run with --run."
        )


def _check_same(store: GraphStore, run: Path, table: MoleculeTable) -> None:
    """Raise if a store was made of another table, or otherwise than is asked for now."""
    built = store.manifest.built
    changed = [name for name, value in table.how_built().items() if built.get(name, value) != value]
    changed += ["target"] if store.task.targets != table.targets else []
    changed += ["choice of features or descriptors"] if store.manifest.inputs != table.inputs else []
    changed += ["choice of weights"] if ("weights" in built) != (table.weights is not None) else []
    if changed:
        raise GritError(
            f"the run {str(run)!r} was begun with another {', '.join(changed)}. Repeat the command as it was to go on, or begin "
            "a new run with --run."
        )


def compare(store: GraphStore, model: dict[str, float], fingerprints: Array | None, seed: int) -> Comparison:
    """Metrics of simple predictors on the test split; the forest if the packed fingerprints of all graphs are given."""
    train_part, test_part = store.split("train"), store.split("test")
    y_train, y_test = store.targets(train_part).astype(np.float64), store.targets(test_part).astype(np.float64)
    task = Task(store.task)
    constant = task.metrics(constant_outputs(store.task, y_train, len(y_test)), y_test)
    if fingerprints is None:
        return Comparison(model, constant, None)
    x_train, x_test = (np.unpackbits(fingerprints[part], axis=1) for part in (train_part, test_part))
    return Comparison(model, constant, task.metrics(forest_outputs(store.task, x_train, y_train, x_test, seed), y_test))
