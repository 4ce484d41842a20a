"""Training all runs of a sweep one after the other. Finished ones are not run again, an interrupted one goes on."""

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grit.datasets import load
from grit.errors import GritError, Interrupted
from grit.files.spreadsheet import guarded
from grit.files.whole_file import write_text
from grit.graphs.store import GraphStore
from grit.learning.metrics import METRICS
from grit.recipe.builder import build_model, training_statistics
from grit.training.device import check_device
from grit.training.loggers import RunLog
from grit.training.run_folder import RunFolder
from grit.training.seeds import SeedResults, summarise
from grit.training.sweep_file import SweepRun
from grit.training.train import RunOptions, check_same, refuse_several_processes

Train = Callable[[SweepRun, Path, GraphStore], dict[str, Any]]


@dataclass(frozen=True)
class SweepResult:
    """What came out of a run: the content of its ``result.json``, or why there is none."""

    run: SweepRun
    result: dict[str, Any] | None = None
    error: str | None = None


@dataclass(frozen=True)
class Combination:
    """The runs of one combination, over their seeds.

    Attributes:
        name: Of its folder.
        values: Of the grid.
        metric: By which it is measured.
        val: On validation, at each run's best epoch; by this the combinations are ordered.
        test: On the test split; None where there is none.
        failed: How many runs have no result.
    """

    name: str
    values: dict[str, Any]
    metric: str | None
    val: SeedResults | None
    test: SeedResults | None
    failed: int


def check_sweep(runs: Sequence[SweepRun], folder: Path, options: RunOptions) -> dict[str, GraphStore]:
    """The data of all runs by name; an error if any of the runs could not begin or go on."""
    refuse_several_processes("grit sweep runs in one process. Start single runs with torchrun and grit train.")
    check_device(options.device)
    RunLog(options.log)
    if (folder / "config.yaml").exists():
        raise GritError(
            f"{str(folder)!r} is a run folder, and the runs of a sweep go into folders below one. Use --run."
        )
    stores: dict[str, GraphStore] = {}
    for run in runs:
        name = run.recipe.dataset
        try:
            if name not in stores:
                stores[name] = load(name, options.root)
            store = stores[name]
            for split in ("train", "val"):
                if store.split(split).size == 0:
                    raise GritError(f"{store.name}: the split {split!r} is empty.")
            build_model(run.recipe, store.schema, statistics=training_statistics(run.recipe, store))
            RunFolder(folder / run.folder).has_work(resume=True)
            check_begun(run, folder)
        except GritError as error:
            raise GritError(f"{run.folder}: {error}") from None
    return stores


def run_sweep(
    runs: Sequence[SweepRun], folder: Path, stores: dict[str, GraphStore], train: Train
) -> Iterator[SweepResult]:
    """Train one run after the other; ``sweep.csv`` is written again after each.

    A run that fails, for example because its loss became infinite, does not stop the others.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise GritError(f"cannot use the folder {str(folder)!r}: {error}") from None
    done: list[SweepResult] = []
    for run in runs:
        try:
            found = SweepResult(run, train(run, folder / run.folder, stores[run.recipe.dataset]))
        except Interrupted:
            raise
        except GritError as error:
            found = SweepResult(run, error=" ".join(str(error).split()))
        done.append(found)
        write_text(folder / "sweep.csv", sweep_csv(done, folder))
        yield found


def ranking(results: Sequence[SweepResult]) -> list[Combination]:
    """The combinations, the best mean on validation first: choosing by the test split would flatter it."""
    by_name: dict[str, list[SweepResult]] = {}
    for each in results:
        by_name.setdefault(each.run.combination, []).append(each)
    return sorted((_combination(group) for group in by_name.values()), key=_order)


def sweep_csv(results: Sequence[SweepResult], folder: Path) -> str:
    """A line per run, the best on validation first, as CSV."""
    keys = list(results[0].run.values)
    lines: list[list[Any]] = [
        ["run", *keys, "seed", "metric", "val", "test", "best_epoch", "epochs", "parameters", "seconds", "error"]
    ]
    order = {each.name: place for place, each in enumerate(ranking(results))}
    for each in sorted(results, key=lambda each: order[each.run.combination]):
        row: list[Any] = [str(folder / each.run.folder), *[each.run.values[key] for key in keys]]
        row.append(each.run.recipe.train.seed)
        if each.result is None:
            row += ["", "", "", "", "", "", "", each.error]
        else:
            found, metric = each.result, each.result["metric"]
            best = found["best_epoch"]
            row += [metric, found.get("val", {}).get(metric, ""), found.get("test", {}).get(metric, "")]
            row += ["" if best is None else best + 1, found["epochs"], found["num_parameters"], found["seconds"], ""]
        lines.append([guarded(cell) if isinstance(cell, str) else cell for cell in row])
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()


def check_begun(run: SweepRun, folder: Path) -> None:
    """Raise if the folder of a run holds training with other settings, because the file of the sweep was changed."""
    begun = RunFolder(folder / run.folder)
    if begun.state() in ("trained", "finished"):
        check_same(begun, run.recipe)


def _combination(group: Sequence[SweepResult]) -> Combination:
    found = [each.result for each in group if each.result is not None]
    first = group[0].run
    if not found:
        return Combination(first.combination, first.values, None, None, None, len(group))
    metric = found[0]["metric"]
    val, test = ([each[split][metric] for each in found if split in each] for split in ("val", "test"))
    return Combination(
        first.combination,
        first.values,
        metric,
        summarise(val),
        summarise(test) if test else None,
        len(group) - len(found),
    )


def _order(combination: Combination) -> tuple[bool, str, bool, float]:
    if combination.val is None or combination.metric is None:
        return (True, "", True, 0.0)
    mean = combination.val.mean
    sign = -1.0 if METRICS[combination.metric].higher_is_better else 1.0
    return (False, combination.metric, mean != mean, sign * mean)
