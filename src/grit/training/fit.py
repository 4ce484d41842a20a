"""From a table of SMILES to a trained predictor, with simple predictors beside it for comparison."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from grit.datasets.own.data_notes import notes_of
from grit.datasets.own.molecule_tables import MoleculeTable
from grit.datasets.pipeline.write_store import RowProgress
from grit.files.whole_file import write_text
from grit.graphs.chunk import Array
from grit.graphs.schema import OGB_ATOM, OGB_BOND, GraphSchema
from grit.graphs.store import GraphStore
from grit.learning.task import Task
from grit.recipe.presets import preset_recipe
from grit.training.calibration import calibrated
from grit.training.compare_simple import compare_simple, kept_descriptors
from grit.training.conformal import check_confidence
from grit.training.device import check_device
from grit.training.fit_folder import (
    COMPARISON,
    DESCRIPTORS,
    FitPlan,
    FitRecord,
    check_same_plan,
    fit_folder,
    has_models,
)
from grit.training.held_out import coverage, held_out_splits, write_predictions
from grit.training.loggers import RunLog
from grit.training.loop import Event
from grit.training.members import Member, check_members, members_of, train_members
from grit.training.neighbours import Neighbours
from grit.training.predictor import Predictor, load, load_run
from grit.training.prepared_table import prepared_table, tell_prepared
from grit.training.train import RunOptions, refuse_several_processes


class Comparison(NamedTuple):
    """Metrics on the test split: of the model, and of simple predictors; ``tested`` as `SimpleRow.as_json`, by their names."""

    model: dict[str, float]
    constant: dict[str, float]
    forest: dict[str, float] | None
    tested: dict[str, dict[str, Any]] | None = None


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
    plan: FitPlan | None = None,
    resume: bool = False,
    with_forest: bool = True,
    options: RunOptions | None = None,
    reading: AbstractContextManager[RowProgress] | None = None,
    watching: Callable[[str], AbstractContextManager[Callable[[Event], None]]] | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> FitResult:
    """Train a predictor on a table of molecules, and compare it with simple ones on its test split.

    Args:
        table: The table. Its seed is that of the first model, too.
        run: The folder of the fit, see `grit.training.fit_folder`.
        preset: ``fast``, ``default``, ``paper``, or the file of a recipe.
        overrides: Changes to the preset.
        plan: How many models; one if not given.
        resume: Whether to go on with an existing folder.
        with_forest: Whether to compare with a random forest on fingerprints.
        options: Device, workers, loggers.
        reading: Entered while molecules are read; gives what is told the number of rows done.
        watching: Called with the name of the metric and entered while models are trained; gives what is told of every step.
        say: Told of what the user should know, a sentence at a time.
    """
    options, plan = options or RunOptions(), plan or FitPlan()
    refuse_several_processes(
        "grit fit runs in one process: start it without torchrun. To train with several, make a store of the table "
        "(grit.datasets.from_csv(..., out=STORE)), then start grit train own-default dataset=STORE with torchrun."
    )
    # An error in any of these before the work, not after it.
    check_device(options.device)
    RunLog(options.log)
    check_confidence(plan.confidence)
    schema = GraphSchema(node=OGB_ATOM, edge=OGB_BOND)
    recipe = preset_recipe(preset, schema, f"train.seed={table.seed}", *overrides, dataset=str(run / "data"))
    with fit_folder(run, resume=resume):
        check_same_plan(run, plan)
        with reading or nullcontext() as progress:
            store, fingerprints = prepared_table(
                table, run, begun=has_models(run), made_by="fit", progress=progress, say=say
            )
        tell_prepared(table, run, store, again=fingerprints is None, say=say)
        members = members_of(plan, recipe.train.seed)
        check_members(members, store)
        _record(table, store, plan, members, preset, overrides).write(run)
        with watching(recipe.task(store.task).metric) if watching else nullcontext() as watch:
            results = train_members(members, recipe, run, store, resume=resume, options=options, watch=watch, say=say)
        if fingerprints is None:  # the molecules were read by an earlier process
            fingerprints = table.fingerprints_of(store)
        result = finish(run, store, table.smiles_of(store), fingerprints, members, results, plan, options.device, say)
        inputs, outputs = {}, None
        if with_forest and store.split("test").size:
            say("Comparing with simple predictors on fingerprints and descriptors (leave it out with --no-forest)")
            kept = kept_descriptors(table.standard_smiles_of(store), run / DESCRIPTORS)
            inputs = {"fingerprints": fingerprints, "descriptors": kept}
            outputs = load(run).predict_store(store, "test")[0]
        compared = compare(store, result.get("test", {}), inputs, table.seed, outputs=outputs, say=say)
        write_text(run / COMPARISON, json.dumps(compared._asdict(), indent=1) + "\n")
    return FitResult(result, compared, store.manifest.skipped)


def finish(
    run: Path,
    store: GraphStore,
    smiles: Sequence[str],
    fingerprints: Array,
    members: Sequence[Member],
    results: Sequence[dict[str, Any]],
    plan: FitPlan,
    device: str,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Predict what was held out, write all that rests on it, and give the result.

    Args:
        run: The folder of the fit.
        store: The molecules.
        smiles: Of each.
        fingerprints: Of each, packed.
        members: The models.
        results: What each was trained to.
        plan: What was asked for.
        device: Where to compute.
        say: Told of what the user should know.
    """
    trained = [load_run(run / member.name) for member in members]
    where = "cpu" if device == "auto" else device
    predictor = Predictor(*trained[0], where, others=trained[1:])
    held = held_out_splits(predictor, store)
    learned_from, result = store.split("train"), dict(results[0])
    if len(members) > 1:
        test = held.of("test")
        figures = Task(trained[0].data.task).metrics(test.outputs, test.truth) if len(test.parts) else {}
        result = {
            **result,
            **({"test": figures} if figures else {}),
            "val": Task(trained[0].data.task).metrics(held.of("val").outputs, held.of("val").truth),
            "seconds": sum(each["seconds"] for each in results),
            "members": [{"folder": each.name, **found} for each, found in zip(members, results, strict=True)],
        }
    known = held.of("val")
    found = calibrated(store.task, known.outputs, known.spread, known.truth, plan.confidence, "validation")
    few = found.too_few(store.task, plan.confidence)
    if few:
        say(few)
    write_predictions(run, store, smiles, held, found)
    Neighbours.of(fingerprints[learned_from], store.rows[learned_from]).write(run)
    found.write(run)
    covered = coverage(store.task, held.of("test"), found) if "test" in held.parts else None
    if covered is not None and not few:
        what = {"regression": "intervals", "mixed": "intervals and sets"}.get(store.task.kind, "sets")
        say(f"{plan.confidence:.0%} {what} from the validation molecules cover {covered:.1%} of the test values")
        result["coverage"] = covered
    return result


def _record(
    table: MoleculeTable,
    store: GraphStore,
    plan: FitPlan,
    members: Sequence[Member],
    preset: str,
    overrides: Sequence[str],
) -> FitRecord:
    return FitRecord(
        members=tuple(member.name for member in members),
        ensemble=plan.ensemble,
        folds=plan.folds,
        repeats=plan.repeats,
        asked={
            "table": table.path.name,
            "targets": table.targets,
            "task": table.task,
            "split": table.split,
            "seed": table.seed,
            "standardise": table.standardise,
            "duplicates": table.duplicates,
            "preset": preset,
            "overrides": list(overrides),
            "confidence": plan.confidence,
        },
        inferred={
            "smiles": table.smiles,
            "task": store.task.kind,
            "classes": store.task.classes,
            "molecules": len(store),
            "skipped": store.manifest.skipped,
            "splits": {name: int(part.size) for name, part in store.splits.items()},
        },
        notes=tuple(note._asdict() for note in notes_of(store)),
    )


def compare(
    store: GraphStore,
    model: dict[str, float],
    inputs: Mapping[str, Array],
    seed: int,
    *,
    outputs: Array | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Comparison:
    """Metrics of simple predictors on the test split of a store, beside those of a model.

    Args:
        store: The molecules.
        model: Metrics of the model.
        inputs: What the simple predictors read, see `compare_simple`.
        seed: Of the predictors.
        outputs: (test molecules, O) of the model, for a paired test against each.
        say: Told which are left out and why.
    """
    targets, test = store.targets(np.arange(len(store))).astype(np.float64), store.split("test")
    rows = compare_simple(store.task, targets, store.split("train"), test, inputs, model=outputs, seed=seed, say=say)
    metrics = {name: Task(store.task).metrics(row.outputs, targets[test]) for name, row in rows.items()}
    tested = None if outputs is None else {name: row.as_json() for name, row in rows.items()}
    return Comparison(model, metrics["constant"], metrics.get("forest"), tested)
