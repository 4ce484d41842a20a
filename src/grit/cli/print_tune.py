"""What ``grit tune`` prints."""

import json
from collections.abc import Mapping
from pathlib import Path
from shlex import quote

from rich.console import Console
from rich.table import Table
from rich.text import Text

from grit.cli.json_text import json_text
from grit.cli.say import say_to
from grit.training.tune import TuneResult
from grit.training.tune_study import TuneTrial

_SHOWN = 5  # of the best trials


def fit_command(data: Path, options: Mapping[str, str | list[str] | None]) -> str:
    """The command that fits the same table; an option that is None is left out."""
    words = ["grit", "fit", str(data)]
    for name, value in options.items():
        for each in [value] if isinstance(value, str) else value or []:
            words += [f"--{name}", each]
    return " ".join(quote(word) for word in words)


def print_tuned(found: TuneResult, next_command: str, as_json: bool) -> None:
    """The best trials, which keys mattered, and what to do next."""
    study = found.study
    if as_json:
        print(
            json_text(
                {
                    "metric": study.metric,
                    "best": {"trial": found.best.number, "val": study.value(found.best), "values": found.best.values},
                    "recipe": str(found.recipe),
                    "importances": found.importances,
                    "trials": [
                        {**trial.model_dump(exclude={"starts"}), "val": study.value(trial)} for trial in study.trials
                    ],
                }
            )
        )
        return
    say = say_to(False)
    ranking = study.ranking()
    own = [trial for trial in ranking[_SHOWN:] if trial.number == 1]
    shown = [*ranking[:_SHOWN], *own]
    table = Table(box=None)
    for column in ("trial", *(str(trial.number) for trial in shown)):
        table.add_column(column, justify="left" if column == "trial" else "right", overflow="fold")
    lines = zip(
        (f"val {study.metric}", *study.space, "epochs", "state"), *(_cells(found, each) for each in shown), strict=True
    )
    for line in lines:
        table.add_row(*map(Text, line))
    Console().print(table)
    counts = {state: sum(trial.state == state for trial in study.trials) for state in ("pruned", "failed")}
    done = f"{len(study.trials)} trials ({counts['pruned']} given up early, {counts['failed']} failed), {study.seconds:.0f} s"
    say(f"{done}; a line for each is in {found.recipe.parent / 'trials.csv'}")
    if found.best.state != "complete":
        say("No trial was trained to the end, so the best is only the best so far.")
    if found.importances is None:
        say("Which key mattered cannot be told from so few trials; go on with --resume and more --trials.")
    else:
        shares = ", ".join(f"{key} {share:.0%}" for key, share in found.importances.items())
        say(f"What mattered, roughly (PED-ANOVA): {shares}")
    say(
        f"The best values are in {found.recipe}. The best of many trials looks better on validation than it is: test it."
    )
    say(f"Next: {next_command}")


def _cells(found: TuneResult, trial: TuneTrial) -> list[str]:
    value = found.study.value(trial)
    values = [each if isinstance(each, str) else json.dumps(each) for each in trial.values.values()]
    state = {"complete": "finished", "pruned": "given up", "running": "not finished"}[trial.state]
    return [f"{value:.4f}", *values, str(len(trial.history)), state]
