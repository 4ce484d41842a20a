"""What ``grit evaluate`` prints."""

from math import isnan

from rich.console import Console
from rich.table import Table
from rich.text import Text

from grit.learning.bootstrap import FEWEST_LABELS, Estimate, Measurement


def print_measurement(found: Measurement, metric: str) -> None:
    """Every metric with its interval, the task's own first: over all targets, then of each."""
    table = Table(box=None)
    several = len(found.targets) > 1
    if several:
        table.add_column("target")
    for name in ("labels", "metric", "value"):
        table.add_column(name, justify="left" if name == "metric" else "right")
    if found.resamples:
        table.add_column(f"{found.confidence:.0%} interval", justify="right")
    blocks = [(name, found.labels[name], values) for name, values in found.targets.items()]
    blocks = [("all targets", sum(found.labels.values()), found.average), *blocks] if several else blocks
    for name, labels, values in blocks:
        for place, key in enumerate(sorted(values, key=lambda each: each != metric)):
            head = [name, f"{labels:,}"] if place == 0 else ["", ""]
            cells = [*(head if several else head[1:]), key, _number(values[key].value)]
            cells += [_interval(values[key])] if found.resamples else []
            table.add_row(*[Text(cell) for cell in cells])
    Console().print(table)
    if found.resamples and max(found.labels.values(), default=0) < FEWEST_LABELS:
        print(f"No intervals: they need {FEWEST_LABELS} labels at least.")


def _interval(each: Estimate) -> str:
    return "" if isnan(each.low) else f"{each.low:.4f} to {each.high:.4f}"


def _number(value: float) -> str:
    return "not defined" if isnan(value) else f"{value:.4f}"
