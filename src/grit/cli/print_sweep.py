"""What ``grit sweep`` prints."""

import json
from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from grit.cli.json_text import json_text
from grit.cli.say import say_to
from grit.cli.training_progress import watching
from grit.errors import GritError, Interrupted
from grit.graphs.store import GraphStore
from grit.training.run_folder import RunFolder
from grit.training.seeds import SeedResults
from grit.training.sweep import Combination, SweepResult, ranking, run_sweep
from grit.training.sweep_file import SweepRun
from grit.training.train import RunOptions, train


def list_sweep(runs: Sequence[SweepRun], folder: Path, as_json: bool) -> None:
    """The runs of a sweep and how far each is."""
    states = [(run, RunFolder(folder / run.folder).state()) for run in runs]
    if as_json:
        print(
            json.dumps(
                [{"run": str(folder / run.folder), "values": run.values, "state": state} for run, state in states]
            )
        )
        return
    say = say_to(False)
    for run, state in states:
        say(f"{folder / run.folder}  {state}")
    left = sum(state != "finished" for _, state in states)
    say(f"{len(runs)} runs, {left} to do. Nothing was trained (--dry-run).")


def sweep_and_show(
    runs: Sequence[SweepRun], folder: Path, stores: dict[str, GraphStore], options: RunOptions, quiet: bool
) -> None:
    """Train what is left, and show the combinations with the best first."""
    say = say_to(quiet)

    def train_one(run: SweepRun, place: Path, store: GraphStore) -> dict[str, Any]:
        if RunFolder(place).state() != "finished":
            say(f"training {place}")
        with watching(run.recipe.task(store.task).metric, quiet=quiet) as watch:
            return train(run.recipe, place, store=store, resume=True, options=options, watch=watch, say=say)

    results: list[SweepResult] = []
    try:
        for number, each in enumerate(run_sweep(runs, folder, stores, train_one), 1):
            results.append(each)
            say(f"{number} of {len(runs)}: {each.run.folder}: {_outcome(each)}")
    except Interrupted as error:
        raise Interrupted(f"{error}\nGo on with the same command.") from None
    combinations = ranking(results)
    if quiet:
        print(json_text([_plain(each) for each in combinations]))
    else:
        _print_table(combinations)
        say(f"one line per run: {folder / 'sweep.csv'}")
        if len(combinations) > 1:
            say(f"Next: grit compare {' '.join(quote(str(folder / each.name)) for each in combinations[:2])}")
    failed = [each for each in results if each.result is None]
    if failed:
        raise GritError(
            f"{len(failed)} of {len(runs)} runs failed; the first: {failed[0].run.folder}: {failed[0].error}"
        )


def _outcome(found: SweepResult) -> str:
    if found.result is None:
        return f"failed: {found.error}"
    metric = found.result["metric"]
    return f"val {metric} {found.result['val'][metric]:.4f}, {found.result['seconds']:.0f} s"


def _print_table(combinations: Sequence[Combination]) -> None:
    table = Table(box=None)
    for key in combinations[0].values:
        table.add_column(key, overflow="fold")
    for column in ("metric", "val", "test", "runs"):
        table.add_column(column, justify="left" if column == "metric" else "right")
    for each in combinations:
        done = 0 if each.val is None else each.val.runs
        runs = f"{done}, {each.failed} failed" if each.failed else str(done)
        values = [Text(value if isinstance(value, str) else json.dumps(value)) for value in each.values.values()]
        table.add_row(*values, each.metric or "-", _mean(each.val), _mean(each.test), runs)
    Console().print(table)


def _mean(row: SeedResults | None) -> str:
    if row is None:
        return "-"
    return f"{row.mean:.4f}" + (f" ± {row.sd:.4f}" if row.runs > 1 else "")


def _plain(each: Combination) -> dict[str, Any]:
    return {
        "name": each.name,
        "values": each.values,
        "metric": each.metric,
        "val": None if each.val is None else each.val._asdict(),
        "test": None if each.test is None else each.test._asdict(),
        "failed": each.failed,
    }
