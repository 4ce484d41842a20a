import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import grit
from grit.datasets import DATASETS
from grit.graphs.schema import TaskSpec
from grit.learning.losses import LOSSES
from grit.learning.metrics import METRICS, accuracy_sbm, metrics_of
from grit.learning.task import Task
from grit.testing import check_loss, check_metric
from tests.golden import FOLDER

MISC = json.loads((FOLDER / "misc.json").read_text())


def targets_of(case):
    values = np.array(
        [[math.nan if v is None else v for v in row] if isinstance(row, list) else row for row in case["true"]],
        dtype=np.float64,
    )
    return torch.from_numpy(values.reshape(len(values), -1))


@pytest.mark.parametrize("case", MISC["losses"], ids=lambda case: case["name"])
def test_the_released_losses_and_their_gradients(case):
    task = Task(DATASETS[case["config"]].task)
    predicted = torch.tensor(case["pred"], dtype=torch.float64, requires_grad=True)
    loss = task.loss(predicted, targets_of(case))
    assert loss.item() == pytest.approx(case["loss"], rel=1e-6, abs=1e-9)
    loss.backward()
    torch.testing.assert_close(predicted.grad, torch.tensor(case["grad"], dtype=torch.float64), rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize(
    "case", [case for case in MISC["losses"] if case["config"] == "pattern"], ids=lambda case: case["name"]
)
def test_the_released_scores_are_our_probabilities(case):
    outputs = Task(DATASETS["pattern"].task).outputs(torch.tensor(case["pred"], dtype=torch.float64))
    torch.testing.assert_close(outputs[:, 0], torch.tensor(case["score"], dtype=torch.float64))


@pytest.mark.parametrize("case", MISC["metrics"], ids=lambda case: f"{case['metric']} {case['name']}")
def test_the_released_metrics(case):
    true, pred = np.array(case["true"], dtype=np.float64), np.array(case["pred"], dtype=np.float64)
    if case["metric"] == "ap":
        # The released metric turns logits into float32 probabilities first, and rounding makes two of them equal. Torch's own
        # float32 sigmoid is off by a last bit on some processors, so the rounding is done here.
        probabilities = (1 / (1 + np.exp(-pred))).astype(np.float32)
        assert METRICS["ap"].compute(probabilities, true) == pytest.approx(case["value"], abs=1e-6)
        assert METRICS["ap"].compute(pred, true) == pytest.approx(case["value"], abs=2e-3)
    else:
        assert accuracy_sbm(pred.ravel(), true.ravel()) == pytest.approx(case["value"], abs=1e-6)


SPECS = {
    "l1": TaskSpec(kind="regression", targets=("a", "b"), loss="l1", metric="mae"),
    "mse": TaskSpec(kind="regression", targets=("a", "b"), loss="mse", metric="rmse"),
    "binary": TaskSpec(kind="binary", targets=("a",), classes=("n", "y"), loss="cross_entropy", metric="auroc"),
    "binary weighted": TaskSpec(
        kind="binary", targets=("a",), classes=("n", "y"), loss="weighted_cross_entropy", metric="ap"
    ),
    "multiclass": TaskSpec(
        kind="multiclass", targets=("a",), classes=("x", "y", "z"), loss="cross_entropy", metric="accuracy"
    ),
    "multiclass weighted": TaskSpec(
        kind="multiclass", targets=("a",), classes=("x", "y", "z"), loss="weighted_cross_entropy", metric="accuracy-sbm"
    ),
    "multilabel": TaskSpec(kind="multilabel", targets=("a", "b"), loss="cross_entropy", metric="ap"),
}


def example(name, rows, seed=0, missing=False):
    spec, generator = SPECS[name], torch.Generator().manual_seed(seed)
    predicted = torch.randn(rows, spec.num_outputs, generator=generator, dtype=torch.float64)
    if spec.kind == "regression":
        target = torch.randn(rows, 2, generator=generator, dtype=torch.float64)
    else:
        target = torch.randint(len(spec.classes) or 2, (rows, len(spec.targets)), generator=generator).double()
    if missing:
        target[::3] = math.nan
    return predicted, target


@pytest.mark.parametrize("name", sorted(LOSSES))
@given(rows=st.integers(7, 30), seed=st.integers(0, 1000))
def test_every_loss(name, rows, seed):
    check_loss(name, rows=rows, seed=seed)


@pytest.mark.parametrize("name", sorted(METRICS))
@given(rows=st.integers(20, 60), seed=st.integers(0, 1000))
@settings(max_examples=15)
def test_every_metric(name, rows, seed):
    check_metric(name, rows=rows, seed=seed)


@pytest.mark.parametrize("name", sorted(SPECS))
class TestEveryTask:
    def test_metrics_of_perfect_predictions(self, name):
        spec = SPECS[name]
        _, target = example(name, 60)
        target = target.numpy()
        perfect = np.eye(3)[target[:, 0].astype(int)] if spec.kind == "multiclass" else target
        metrics = Task(spec).metrics(perfect, target)
        assert metrics.keys() >= metrics_of(spec.kind).keys() - {"accuracy-sbm", "skill"}
        assert ("accuracy-sbm" in metrics) == (spec.metric == "accuracy-sbm")
        for metric, value in metrics.items():
            assert value == pytest.approx(1.0 if METRICS[metric].higher_is_better else 0.0, abs=1e-9)


def test_a_batch_of_one_class_has_no_loss():
    for name in ("binary weighted", "multiclass weighted"):
        predicted, _ = example(name, 5)
        loss = Task(SPECS[name]).loss(predicted.requires_grad_(), torch.zeros(5, 1))
        assert loss.item() == 0.0
        loss.backward()
        assert torch.isfinite(predicted.grad).all()


def test_standardised_targets_are_reported_in_their_own_units():
    spec = TaskSpec(kind="regression", targets=("a", "b"), loss="l1", metric="mae", standardise=True)
    y = np.array([[10.0, 1.0], [14.0, math.nan], [12.0, 1.0]])
    task = Task.fitted(spec, y)
    assert task.mean.tolist() == [12.0, 1.0]
    assert task.scale.tolist() == pytest.approx([np.std([10, 14, 12]), 1.0])  # a constant target is not scaled
    perfect = (torch.tensor([[10.0, 1.0]]) - task.mean) / task.scale
    assert task.loss(perfect, torch.tensor([[10.0, 1.0]])).item() == pytest.approx(0.0, abs=1e-6)
    torch.testing.assert_close(task.outputs(perfect), torch.tensor([[10.0, 1.0]]))
    with pytest.raises(grit.GritError, match="no value in the training split"):
        Task.fitted(spec, np.array([[1.0, math.nan]]))


def test_undefined_metrics_are_nan_and_never_best():
    metrics = Task(SPECS["binary"]).metrics(np.array([[0.2], [0.7]]), np.array([[1.0], [1.0]]))
    assert math.isnan(metrics["auroc"])
    task = Task(SPECS["binary"])
    assert not task.is_better(math.nan, None)
    assert task.is_better(0.5, None)
    assert task.is_better(0.5, 0.4)
    assert not task.is_better(0.4, 0.5)
    assert Task(SPECS["l1"]).is_better(0.4, 0.5)


def test_one_class_among_several_labels_is_left_out_of_the_mean():
    outputs = np.array([[0.9, 0.1], [0.2, 0.3], [0.8, 0.9]])
    targets = np.array([[1.0, 1.0], [0.0, 1.0], [1.0, math.nan]])
    assert METRICS["auroc"].compute(outputs, targets) == 1.0


@given(st.lists(st.integers(0, 3), min_size=1, max_size=40), st.randoms())
def test_accuracy_sbm_is_the_mean_recall(truth, random):
    truth = np.array(truth)
    guess = np.array([random.randrange(4) for _ in truth])
    recalls = []
    for c in sorted(set(truth) | set(guess)):
        members = [g == c for g, t in zip(guess, truth, strict=True) if t == c]
        recalls.append(sum(members) / len(members) if members else 0.0)
    assert accuracy_sbm(guess, truth) == pytest.approx(sum(recalls) / len(recalls))


def test_a_metric_of_another_kind_is_refused():
    with pytest.raises(grit.GritError, match="regression is measured by mae, rmse, r2.*, not by auroc"):
        Task(TaskSpec(kind="regression", targets=("a",), loss="l1", metric="auroc"))
