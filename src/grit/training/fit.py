"""From a table of SMILES to a trained predictor, with simple predictors beside it for comparison."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from grit.datasets.own.molecule_tables import from_csv, how_built, smiles_column
from grit.datasets.own.task_inference import TaskKind
from grit.datasets.pipeline.text_table import TextTable
from grit.errors import GritError
from grit.graphs.chunk import Array
from grit.graphs.store import GraphStore
from grit.graphs.store_format import read_manifest
from grit.graphs.store_place import tidy
from grit.learning.task import Task
from grit.recipe.presets import preset_recipe
from grit.training.forest import constant_outputs, forest_outputs
from grit.training.loop import Event
from grit.training.run_folder import LOCK, RunFolder, refuse_others
from grit.training.train import RunOptions, train

_MADE_BY = "fit"


class Comparison(NamedTuple):
    """Metrics on the test split: of the model, and of simple predictors."""

    model: dict[str, float]
    constant: dict[str, float]
    forest: dict[str, float] | None


def prepare_table(
    path: Path,
    run: Path,
    *,
    targets: Sequence[str],
    smiles: str | None,
    task: TaskKind | None,
    split: str,
    seed: int,
    progress: Callable[[int], None] | None = None,
    say: Callable[[str], None] | None = None,
) -> GraphStore:
    """The table as a store inside the run folder.

    One that is there already is used if it was made of the same table in the same way. If not, it is made again, unless a
    model has been trained on it, or another command made it: then that is an error.
    """
    out = run / "data"
    trained = RunFolder(run / "model").has_work(resume=True)
    if trained or out.exists():
        try:
            store = GraphStore.open(out)
            _check_same(store, run, path, targets, smiles, task, split, seed)
        except GritError:
            if trained:
                raise
            _check_made_by_fit(out)
        else:
            return store
    return from_csv(
        path,
        targets=targets,
        smiles=smiles,
        task=task,
        split=split,
        seed=seed,
        out=out,
        overwrite=True,
        made_by=_MADE_BY,
        progress=progress,
        say=say,
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


def _check_same(
    store: GraphStore,
    run: Path,
    path: Path,
    targets: Sequence[str],
    smiles: str | None,
    task: TaskKind | None,
    split: str,
    seed: int,
) -> None:
    """Raise if a store was made of another table, or otherwise than is asked for now."""
    built = store.manifest.built
    column = smiles if smiles is not None else smiles_column(TextTable(path))
    now = how_built(path, column, task, split, seed)
    changed = [name for name, value in now.items() if built.get(name, value) != value]
    changed += ["target"] if store.task.targets != tuple(targets) else []
    if changed:
        raise GritError(
            f"the run {str(run)!r} was begun with another {', '.join(changed)}. Repeat the command as it was to go on, or begin "
            "a new run with --run."
        )


def fit_table(
    path: Path,
    run: Path,
    store: GraphStore,
    *,
    preset: str,
    seed: int,
    overrides: Sequence[str] = (),
    resume: bool = False,
    options: RunOptions | None = None,
    watch: Callable[[Event], None] | None = None,
    say: Callable[[str], None] | None = None,
    with_forest: bool = True,
) -> tuple[dict[str, Any], Comparison]:
    """Train on a prepared table and compare on its test split."""
    recipe = preset_recipe(preset, store.schema, f"train.seed={seed}", *overrides, dataset=str(run / "data"))
    result = train(recipe, run / "model", store=store, resume=resume, options=options, watch=watch, say=say)
    smiles = smiles_of_rows(path, store, store.manifest.built.get("smiles")) if with_forest else None
    return result, compare(store, result.get("test", {}), smiles, seed)


def compare(store: GraphStore, model: dict[str, float], smiles: Sequence[str] | None, seed: int) -> Comparison:
    """Metrics of simple predictors on the test split; the forest if the SMILES of all graphs are given."""
    train_part, test_part = store.split("train"), store.split("test")
    y_train, y_test = store.targets(train_part).astype(np.float64), store.targets(test_part).astype(np.float64)
    task = Task(store.task)
    constant = task.metrics(constant_outputs(store.task, y_train, len(y_test)), y_test)
    if smiles is None:
        return Comparison(model, constant, None)
    picked = [[smiles[number] for number in part.tolist()] for part in (train_part, test_part)]
    return Comparison(
        model, constant, task.metrics(forest_outputs(store.task, picked[0], y_train, picked[1], seed), y_test)
    )


def smiles_of_rows(path: Path, store: GraphStore, column: str | None) -> list[str]:
    """The SMILES of every graph of a store that was made from a table."""
    name = column if column is not None else smiles_column(TextTable(path))
    by_row = {row.number: row.fields[name] for row in TextTable(path, [name]).rows()}
    rows: Array = store.rows
    return [by_row[int(row)] for row in rows]
