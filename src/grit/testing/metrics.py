"""The rules of `METRICS`."""

from math import isnan

import numpy as np

from grit.graphs.chunk import Array
from grit.learning.metrics import METRICS, Metric
from grit.testing.examples import Example, example, outputs
from grit.testing.graphs import random_order
from grit.testing.rules import Rules, find_entry


def check_metric(metric: str | Metric, *, rows: int = 40, seed: int = 0) -> None:
    """Raise `AssertionError` unless a metric keeps the rules of its table.

    It is a number, better for a perfect prediction in the direction that it declares; the order of the rows makes no difference;
    missing targets do not count; where it is not defined it is nan, never an error.

    Args:
        metric: Entry of `METRICS`, or its name.
        rows: Of the split that it is tried on.
        seed: Of that split.
    """
    rules, entry = find_entry("metric", metric, METRICS)
    rules.hold("it is for one kind of task at least", len(entry.kinds) > 0)
    for kind in entry.kinds:
        with rules.works(f"it takes {kind}"):
            _check(rules, entry, kind, example(kind, rows, seed))


def _check(rules: Rules, metric: Metric, kind: str, given: Example) -> None:
    def value(of: Example, *, perfect: bool = False) -> float:
        predicted = outputs(kind, of.perfect if perfect else of.predicted).numpy()
        return _compute(rules, metric, predicted, of.target.numpy())

    random, perfect = value(given), value(given, perfect=True)
    for found in (random, perfect):
        rules.hold("it is a finite number", bool(np.isfinite(found)), f"got {found}")
    better = perfect > random if metric.higher_is_better else perfect < random
    direction = "higher" if metric.higher_is_better else "lower"
    rules.hold(
        f"a perfect prediction is better, that is {direction}", better, f"{perfect}, and {random} for a random one"
    )
    shuffled = value(given.take(random_order(len(given.target))))
    rules.hold("the order of the rows makes no difference", bool(np.isclose(shuffled, random)), f"{shuffled}, {random}")
    holes = given.without_targets(slice(None, None, 3))
    known = value(holes.take(~holes.target.isnan().any(1)))
    found = value(holes)
    same = bool(np.isclose(found, known, equal_nan=True))
    rules.hold("missing targets do not count", same, f"{found}, and {known} without these rows")
    nothing = value(given.without_targets(slice(None)))
    rules.hold("without any target it is nan", isnan(nothing), f"got {nothing}")
    for few in (given.take(slice(0, 1)), given._replace(target=given.target[:1].expand_as(given.target))):
        value(few)  # it may be nan: one row, or one class


def _compute(rules: Rules, metric: Metric, predicted: Array, target: Array) -> float:
    kept = predicted.copy(), target.copy()
    found = metric.compute(predicted, target)
    rules.hold("it is a float", isinstance(found, float), f"got {type(found).__name__}")
    rules.hold(
        "outputs and targets stay as they are",
        np.array_equal(predicted, kept[0]) and np.array_equal(target, kept[1], equal_nan=True),
    )
    return found
