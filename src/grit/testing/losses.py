"""The rules of `LOSSES`."""

import torch
from torch import Tensor

from grit.learning.losses import LOSSES, Loss, SumOverProcesses, WeightedTerms
from grit.testing.examples import Example, example
from grit.testing.rules import Rules, find_entry


def check_loss(loss: str | Loss, *, rows: int = 13, seed: int = 0) -> None:
    """Raise `AssertionError` unless a loss keeps the rules of its table.

    It is finite, and lower for a perfect prediction; the parts of a batch that several processes share add up to the whole;
    missing targets do not count, and get no gradient; a batch without any target has a loss; classes may be integers. With
    weights, where it has such: ones change nothing, twos double it, and a target of weight 0 has no gradient.

    Args:
        loss: Entry of `LOSSES`, or its name.
        rows: Of the batch that it is tried on.
        seed: Of that batch.
    """
    rules, entry = find_entry("loss", loss, LOSSES)
    rules.hold("it is for one kind of task at least", len(entry.kinds) > 0)
    for kind in entry.kinds:
        with rules.works(f"it takes {kind}"):
            given = example(kind, rows, seed)
            _check_value(rules, entry, given)
            _check_parts(rules, entry, given)
            _check_missing(rules, entry, given)
            if entry.weighted is not None:
                _check_weighted(rules, entry, entry.weighted, given)
            if kind != "regression":
                as_integers = _mean(entry, given.predicted, given.target.long())
                rules.close("classes may be integers", as_integers, _mean(entry, given.predicted, given.target))


def _alone(value: Tensor) -> Tensor:
    return value


def _mean(loss: Loss, predicted: Tensor, target: Tensor) -> Tensor:
    total, weight = loss.terms(predicted, target, _alone)
    return total / weight


def _check_value(rules: Rules, loss: Loss, given: Example) -> None:
    total, weight = loss.terms(given.predicted, given.target, _alone)
    for name, term in (("numerator", total), ("denominator", weight)):
        rules.shape(f"its {name} is a single number", term, ())
    rules.finite("it is finite", total / weight)
    rules.hold("its denominator is positive", float(weight) > 0, f"got {float(weight)}")
    predicted = given.predicted.clone().requires_grad_()
    _mean(loss, predicted, given.target).backward()  # type: ignore[no-untyped-call]
    rules.hold("it has a gradient", predicted.grad is not None and bool(predicted.grad.any()))
    random, perfect = float(total / weight), float(_mean(loss, given.perfect, given.target))
    rules.hold("a perfect prediction has a lower loss", perfect < random, f"{perfect}, and {random} for a random one")


def _check_parts(rules: Rules, loss: Loss, given: Example) -> None:
    rule = "the parts of a batch add up to the whole: over_all sums what one process cannot know"
    summed: list[Tensor] = []

    def record(value: Tensor) -> Tensor:
        summed.append(value)
        return value

    total, weight = loss.terms(given.predicted, given.target, record)
    parts = [given.take(slice(0, 5)), given.take(slice(5, None))]
    asked: list[list[Tensor]] = [[], []]

    def of_whole(mine: list[Tensor]) -> SumOverProcesses:
        """What the processes would have summed, which was found by one that had the whole batch."""

        def replay(value: Tensor) -> Tensor:
            mine.append(value)
            rules.hold(rule, len(mine) <= len(summed), "over_all is called more often for a part")
            return summed[len(mine) - 1]

        return replay

    terms = [loss.terms(part.predicted, part.target, of_whole(mine)) for part, mine in zip(parts, asked, strict=True)]
    for value, first, second in zip(summed, *asked, strict=True):
        rules.close(rule, first + second, value)
    rules.close(rule, (terms[0][0] + terms[1][0]) / (terms[0][1] + terms[1][1]), total / weight)


def _check_weighted(rules: Rules, loss: Loss, weighted: WeightedTerms, given: Example) -> None:
    holes = given.without_targets(slice(None, None, 3))
    plain = _mean(loss, holes.predicted, holes.target)
    ones = torch.ones_like(holes.target)
    for factor in (1.0, 2.0):
        total, count = weighted(holes.predicted, holes.target, factor * ones)
        rules.close(f"weights of {factor:g} multiply it by {factor:g}", total / count, factor * plain)
    predicted = holes.predicted.clone().requires_grad_()
    weight = ones.clone()
    weight[1::2] = 0.0
    total, count = weighted(predicted, holes.target, weight)
    (total / count).backward()  # type: ignore[no-untyped-call]
    assert predicted.grad is not None
    rules.hold("a target of weight 0 has no gradient", not bool(predicted.grad[1::2].any()))
    rules.hold("others have", bool(predicted.grad[::2].any()))


def _check_missing(rules: Rules, loss: Loss, given: Example) -> None:
    holes = given.without_targets(slice(None, None, 3))
    known = ~torch.isnan(holes.target).any(1)
    rows = holes.take(known)
    predicted = holes.predicted.clone().requires_grad_()
    found = _mean(loss, predicted, holes.target)
    rules.close("missing targets do not count", found.detach(), _mean(loss, rows.predicted, rows.target))
    found.backward()  # type: ignore[no-untyped-call]
    assert predicted.grad is not None
    rules.finite("the gradient is finite where targets are missing", predicted.grad)
    rules.hold("missing targets have no gradient", not bool(predicted.grad[~known].any()))
    nothing = given.without_targets(slice(None))
    predicted = nothing.predicted.clone().requires_grad_()
    found = _mean(loss, predicted, nothing.target)
    rules.finite("a batch without any target has a loss", found)
    found.backward()  # type: ignore[no-untyped-call]
    assert predicted.grad is not None
    rules.hold("a batch without any target has no gradient", not bool(predicted.grad.any()))
