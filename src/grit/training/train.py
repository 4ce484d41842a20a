"""Starting and resuming runs."""

import atexit
import os
import random
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.distributed as dist
from lightning_fabric import Fabric
from lightning_fabric.strategies.ddp import DDPStrategy

from grit.datasets import load
from grit.errors import GritError
from grit.files.whole_file import remove_abandoned
from grit.graphs.store import GraphStore
from grit.learning.task import Task
from grit.memory import keep_freed_memory
from grit.recipe.builder import build_model, training_statistics
from grit.recipe.config import Recipe
from grit.training.device import check_device
from grit.training.dotted import different_keys, dotted
from grit.training.initial_weights import (
    InitPart,
    InitRecord,
    check_same_init,
    find_initial_weights,
    read_record,
    recorded_weights,
    tell_taken,
)
from grit.training.loggers import RunLog
from grit.training.loop import Event, TrainingLoop
from grit.training.run_folder import RunData, RunFolder, describe_data


class RunOptions(NamedTuple):
    """How a run is carried out; none of it changes the result.

    Attributes:
        device: ``auto``, ``cpu``, ``cuda`` ...
        checkpoint_seconds: How often the run is saved, at least.
        num_workers: Processes that prepare batches.
        compile_model: Whether the model goes through ``torch.compile``.
        root: Folder of the data sets.
        log: Entries of `LOGGERS` that are given every epoch.
    """

    device: str = "auto"
    checkpoint_seconds: float = 60.0
    num_workers: int = 0
    compile_model: bool = False
    root: Path | None = None
    log: tuple[str, ...] = ()


def train(
    recipe: Recipe,
    run: str | Path,
    *,
    store: GraphStore | None = None,
    resume: bool = False,
    init: str | Path | None = None,
    init_part: InitPart = "all",
    options: RunOptions | None = None,
    watch: Callable[[Event], None] | None = None,
    say: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Train a recipe into a run folder, from the beginning or from where it was interrupted.

    Several processes share the work if the program was started by ``torchrun``.

    Args:
        recipe: What to train; when resuming it must be the folder's own.
        run: The run folder.
        store: The data; that of ``recipe.dataset`` if not given.
        resume: Whether to go on with an existing folder. One that does not exist is begun.
        init: A run folder or a file of weights that a new run begins with, where names and shapes fit; see
            `grit.training.initial_weights`. A run that is resumed does not read it again.
        init_part: ``all``, or ``encoder`` for everything but the head.
        options: Device, saving, workers, loggers.
        watch: Told of every step and epoch.
        say: Told of what the user should know, a sentence at a time.

    Returns:
        What is written to ``result.json``.
    """
    options = RunOptions() if options is None else options
    say = say or (lambda line: None)
    log = RunLog(options.log)  # an error in a name before the work
    keep_freed_memory()
    fabric = make_fabric(recipe.train.precision, options.device)
    store = load(recipe.dataset, options.root) if store is None else store
    check_splits(store)
    members = store.split("train")
    task = Task.fitted(
        recipe.task(store.task),
        store.targets(members, "train"),
        weights=store.weights(members),
        balance=recipe.train.balance,
    )
    data = describe_data(store, task, training_statistics(recipe, store))
    folder = RunFolder(run)
    with ExitStack() as held:

        def start() -> tuple[bool, str | None]:
            # Errors before even the lock is made in somebody's folder.
            record = None
            if not folder.has_work(resume=resume):
                record = _initial(folder, recipe, store, data, init, init_part, resume=resume)
            held.enter_context(folder.held())
            goes_on = _start(folder, recipe, data, record, resume=resume)
            if goes_on:
                check_same_init(folder, init, init_part)
            return goes_on, None if record is None else record.model_dump_json()

        goes_on, text = _decided_by_first(fabric, start)
        record = None if text is None else InitRecord.model_validate_json(text)
        result = folder.result() if goes_on else None
        if result is not None:
            if fabric.is_global_zero:
                say(f"the run {str(folder.path)!r} was finished already; nothing is trained again")
                log.of_finished(recipe, folder, result)
            return result
        weighed = None if task.weighing is None else task.weighing.describe(task.spec)
        if weighed is not None and fabric.is_global_zero:
            say(weighed)
        if record is not None and not goes_on and fabric.is_global_zero:
            tell_taken(record, say)
        seed = recipe.train.seed + fabric.global_rank
        torch.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed % 2**32)  # noqa: NPY002  (whatever else may draw from it is part of the run)
        loop = TrainingLoop(
            recipe,
            store,
            folder,
            fabric,
            task,
            data,
            checkpoint_seconds=options.checkpoint_seconds,
            num_workers=options.num_workers,
            compile_model=options.compile_model,
            watch=watch,
            log=log.epoch,
            initial=None if goes_on else recorded_weights(folder, recipe),
        )
        return _run(loop, goes_on, log, say)


def _initial(
    folder: RunFolder,
    recipe: Recipe,
    store: GraphStore,
    data: RunData,
    init: str | Path | None,
    part: InitPart,
    *,
    resume: bool,
) -> InitRecord | None:
    """The weights that a new run begins with; None for those of its seed."""
    if init is not None:
        return find_initial_weights(init, part, recipe, build_model(recipe, store.schema, statistics=data.statistics))
    return read_record(folder) if resume else None  # of a run that was killed before it learned anything


def _decided_by_first(fabric: Fabric, decide: Callable[[], tuple[bool, str | None]]) -> tuple[bool, str | None]:
    """What the first process decides, or its error, in every process: the others might already see what it has made."""
    decided: tuple[bool, str | None] = False, None
    error = None
    if fabric.is_global_zero:
        try:
            decided = decide()
        except GritError as raised:
            error = raised
    try:
        decided, message = fabric.broadcast((decided, None if error is None else str(error)))
    except RuntimeError as lost:
        raise _lost(lost) from None
    if message is not None:
        raise error or GritError(message)
    return decided


def _lost(error: RuntimeError) -> GritError:
    return GritError(
        f"the processes of the run lost one another, probably because one of them ended ({error}). "
        "Start them again with --resume, which goes on from the last checkpoint."
    )


def _start(folder: RunFolder, recipe: Recipe, data: RunData, record: InitRecord | None, *, resume: bool) -> bool:
    """Make the folder ready; whether there is training in it to go on with."""
    goes_on = folder.has_work(resume=resume)
    # In the folder itself every file is written again, which removes its leftovers.
    remove_abandoned(folder.checkpoints)
    if goes_on:
        check_same(folder, recipe)
        _check_same_data(folder, data)
        return True
    folder.begin(recipe, data, None if record is None else record.model_dump_json(indent=1) + "\n")
    return False


def _run(loop: TrainingLoop, goes_on: bool, log: RunLog, say: Callable[[str], None]) -> dict[str, Any]:
    try:
        if goes_on:
            note = loop.resume()
            if note:
                say(note)
            say(f"resumed at epoch {loop.progress.epoch + 1}, after batch {loop.progress.batch}")
        with log.of_run(loop.recipe, loop.folder, loop.history) if loop.fabric.is_global_zero else nullcontext():
            result = loop.run()
            log.result = result
    except RuntimeError as error:
        if loop.fabric.world_size == 1:
            raise
        raise _lost(error) from None
    if loop.progress.best_epoch is None:
        say(
            f"{result['metric']} could not be computed on the validation set in any epoch (it may hold a single class), so no "
            "best epoch could be chosen: the last one was tested. Choose another split, or another metric (train.metric)."
        )
    cut = f", of which {loop.progress.cut_at:.0%} was trained" if loop.progress.cut_at < 1 else ""
    if result["epochs"] < loop.config.epochs or cut:
        say(f"stopped after epoch {result['epochs']} of {loop.config.epochs}{cut}: {loop.ended_early()}")
    return result


def make_fabric(precision: str, device: str = "auto") -> Fabric:
    """Device and processes: those that ``torchrun`` started, or this one."""
    world = _world_size()
    strategy = DDPStrategy(find_unused_parameters=True) if world > 1 else "auto"
    local = int(os.environ.get("LOCAL_WORLD_SIZE", "1")) if world > 1 else 1
    accelerator = (
        "cuda"
        if device == "auto" and torch.cuda.is_available()
        else "cpu"
        if device == "auto"
        else device.split(":")[0]
    )
    check_device(device)
    try:
        fabric = Fabric(
            accelerator=accelerator,
            devices=local,
            num_nodes=world // local,
            precision=precision,  # type: ignore[arg-type]
            strategy=strategy,
        )
        fabric.launch()
    except (RuntimeError, ValueError) as error:
        raise GritError(f"cannot use the device {device!r} with precision {precision!r}: {error}") from None
    if world > 1:
        atexit.register(_leave_processes)
    return fabric


def _world_size() -> int:
    return int(os.environ.get("WORLD_SIZE", "1")) if "TORCHELASTIC_RUN_ID" in os.environ else 1


def refuse_several_processes(message: str) -> None:
    """Raise if ``torchrun`` started several processes, for work that one process does."""
    if _world_size() > 1:
        raise GritError(message)


def check_splits(store: GraphStore) -> None:
    """Raise if there is nothing to learn from, or to choose by."""
    for split in ("train", "val"):
        if store.split(split).size == 0:
            raise GritError(
                f"{store.name}: the split {split!r} is empty; training needs one to learn from and one to choose by."
            )


def _leave_processes() -> None:
    """End the connection to the other processes: one that is still open when Python ends can abort the process."""
    if dist.is_initialized():
        dist.destroy_process_group()


def check_same(folder: RunFolder, recipe: Recipe) -> None:
    """Raise if a run was begun with another configuration."""
    # A plugin may have moved: what it is for, other keys say.
    begun, asked = (dotted(each.model_dump(exclude={"plugins"})) for each in (folder.recipe(), recipe))
    if begun != asked:
        changed = different_keys(begun, asked)
        shown = ", ".join(f"{key} was {begun.get(key)}, is now {asked.get(key)}" for key in changed[:4])
        raise GritError(
            f"the run {str(folder.path)!r} was begun with another configuration ({shown}{', ...' if changed[4:] else ''}). "
            "Resume it with the overrides that it was begun with, or begin a new one with --run."
        )


def _check_same_data(folder: RunFolder, data: RunData) -> None:
    before = folder.data()  # of runs begun by older versions one or both are not known
    other_splits = before.split_checksums and before.split_checksums != data.split_checksums
    other_data = None not in (before.checksum, data.checksum) and before.checksum != data.checksum
    if other_splits or other_data:
        raise GritError(
            f"the run {str(folder.path)!r} was begun on other data or splits than those that are there now."
        )
