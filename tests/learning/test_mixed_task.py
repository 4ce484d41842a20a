"""Targets of several kinds in one task: each is trained, given and measured as it would be alone."""

from math import log

import numpy as np
import pytest
import torch

from grit.errors import GritError
from grit.graphs.schema import TaskSpec
from grit.graphs.store_check import check_targets
from grit.learning.bootstrap import compare_pair, measure
from grit.learning.task import Task

NAN = float("nan")
NUMBER = TaskSpec(kind="regression", targets=("a",), loss="l1", metric="mae", standardise=True)
BINARY = TaskSpec(kind="binary", targets=("b",), classes=("no", "yes"), loss="cross_entropy", metric="auroc")
COLOUR = TaskSpec(kind="multiclass", targets=("c",), classes=("r", "g", "b"), loss="cross_entropy", metric="accuracy")
PARTS = (NUMBER, COLOUR, BINARY)
MIXED = TaskSpec(kind="mixed", targets=("a", "c", "b"), loss="standardised", metric="skill", parts=PARTS)
TARGET = np.array([[10.0, 0, 1], [20.0, 2, NAN], [NAN, 1, 0], [30.0, 2, 1]])


@pytest.fixture
def predicted():
    return torch.from_numpy(np.random.default_rng(0).normal(size=(4, 5)))


def alone(predicted):
    """Each part by itself: task, what the model gives for it, its target."""
    for column, (spec, outputs) in enumerate(zip(PARTS, (slice(0, 1), slice(1, 4), slice(4, 5)), strict=True)):
        target = TARGET[:, [column]]
        yield Task.fitted(spec, target), predicted[:, outputs], torch.from_numpy(target)


def test_the_loss_is_that_of_each_in_units_of_ignorance(predicted):
    total = sum(
        float(task.loss_terms(each, target)[0]) / unit
        for (task, each, target), unit in zip(alone(predicted), (1.0, log(3), log(2)), strict=True)
    )
    found = Task.fitted(MIXED, TARGET).loss(predicted, torch.from_numpy(TARGET))
    assert float(found) == pytest.approx(total / 10)  # of twelve targets two are missing


def test_outputs_are_those_of_each(predicted):
    wanted = torch.cat([task.outputs(each) for task, each, _ in alone(predicted)], 1)
    assert torch.equal(Task.fitted(MIXED, TARGET).outputs(predicted), wanted)
    assert MIXED.num_outputs == 5


def test_what_a_run_keeps_suffices(predicted):
    fitted = Task.fitted(MIXED, TARGET)
    again = Task(TaskSpec.model_validate_json(MIXED.model_dump_json()), fitted.mean.numpy(), fitted.scale.numpy())
    assert torch.equal(again.outputs(predicted), fitted.outputs(predicted))


def test_metrics_are_those_of_each_kind(predicted):
    task = Task.fitted(MIXED, TARGET)
    found = task.metrics(task.outputs(predicted).numpy(), TARGET)
    each = [one.metrics(one.outputs(part).numpy(), target.numpy()) for one, part, target in alone(predicted)]
    assert found["mae"] == each[0]["mae"]
    assert found["auroc"] == each[2]["auroc"]
    assert found["accuracy"] == pytest.approx((each[1]["accuracy"] + each[2]["accuracy"]) / 2)
    assert "skill" in found
    assert "skill" not in each[0]


def test_skill_is_1_for_who_knows_and_0_for_who_knows_the_shares():
    task = Task.fitted(MIXED, TARGET)
    known = np.array([[10, 1, 0, 0, 1], [20, 0, 0, 1, 0.5], [0, 0, 1, 0, 0], [30, 0, 0, 1, 1]], dtype=float)
    assert task.metrics(known, TARGET)["skill"] == pytest.approx(1.0, abs=1e-5)
    shares = np.tile([20, 1 / 4, 1 / 4, 2 / 4, 2 / 3], (4, 1))
    assert task.metrics(shares, TARGET)["skill"] == pytest.approx(0.0, abs=1e-9)


def test_bootstrap_intervals_are_those_of_each():
    rng = np.random.default_rng(3)
    target = np.stack([rng.normal(size=80), rng.integers(0, 3, 80), rng.integers(0, 2, 80)], 1).astype(float)
    task = Task.fitted(MIXED, target)
    outputs = task.outputs(torch.from_numpy(rng.normal(size=(80, 5)))).numpy()
    found = measure(MIXED, outputs, target, resamples=60)
    assert {name: each.value for name, each in found.average.items()} == pytest.approx(task.metrics(outputs, target))
    for name, spec, at in (("a", NUMBER, slice(0, 1)), ("c", COLOUR, slice(1, 4)), ("b", BINARY, slice(4, 5))):
        column = MIXED.targets.index(name)
        alone = measure(spec, outputs[:, at], target[:, [column]], resamples=60)
        shared = {key: each for key, each in found.targets[name].items() if key != "skill"}
        assert shared == alone.targets[name]
    assert found.average["mae"] == found.targets["a"]["mae"]
    skill = found.average["skill"]
    assert skill.low < skill.value < skill.high
    better = outputs.copy()
    better[:, 0] = target[:, 0]
    difference = compare_pair(MIXED, better, outputs, target, resamples=60)
    both = [task.metrics(each, target)["skill"] for each in (better, outputs)]
    assert difference.value == pytest.approx(both[0] - both[1])
    assert difference.low > 0


def test_balance_and_weights_reach_each(predicted):
    weights = np.array([1.0, 3.0, 2.0, 2.0])
    task = Task.fitted(MIXED, TARGET, weights=weights, balance=True)
    total = 0.0
    units = (1.0, log(3), log(2))
    for column, ((_, each, target), spec, unit) in enumerate(zip(alone(predicted), PARTS, units, strict=True)):
        one = Task.fitted(spec, TARGET[:, [column]], weights=weights, balance=spec.kind != "regression")
        total += float(one.loss_terms(each, target, weight=torch.from_numpy(weights))[0]) / unit
    assert float(task.loss(predicted, torch.from_numpy(TARGET), torch.from_numpy(weights))) == pytest.approx(total / 10)
    assert "c r x" in task.weighing.describe(MIXED)


def test_what_does_not_fit_is_refused():
    with pytest.raises(GritError, match="have a loss each, not all the loss l1"):
        Task(MIXED.model_copy(update={"loss": "l1"}))
    with pytest.raises(GritError, match="not by mae"):
        Task(MIXED.model_copy(update={"metric": "mae"}))
    with pytest.raises(GritError, match=r"a target is 3\.0, expected a class: 0 to 2"):
        check_targets(np.array([[1.5, 3, 0]]), MIXED)
    for changes in ({"parts": ()}, {"targets": ("a", "b", "c")}, {"kind": "regression"}):
        with pytest.raises(ValueError, match=r"mixed|parts"):
            TaskSpec.model_validate({**MIXED.model_dump(), **changes})


@pytest.mark.parametrize(
    ("spec", "kinds", "outputs"),
    [
        (MIXED, ["regression", "multiclass", "binary"], [(0, 1), (1, 4), (4, 5)]),
        (BINARY, ["binary"], [(0, 1)]),
        (COLOUR, ["multiclass"], [(0, 3)]),
        (TaskSpec(kind="multilabel", targets=("p", "q"), loss="x", metric="y"), ["binary"] * 2, [(0, 1), (1, 2)]),
        (TaskSpec(kind="regression", targets=("p", "q"), loss="x", metric="y"), ["regression"] * 2, [(0, 1), (1, 2)]),
    ],
)
def test_every_task_by_target(spec, kinds, outputs):
    parts = spec.by_target()
    assert [part.spec.kind for part in parts] == kinds
    assert [(part.outputs.start, part.outputs.stop) for part in parts] == outputs
    assert tuple(part.spec.targets[0] for part in parts) == spec.targets
