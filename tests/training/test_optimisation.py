import json

import pytest
import torch

import grit
from grit.training.config import TrainConfig
from grit.training.optimisation import build_optimizer, learning_rate
from tests.golden import FOLDER

SCHEDULES = json.loads((FOLDER / "misc.json").read_text())["schedules"]


@pytest.mark.parametrize("case", SCHEDULES, ids=lambda case: case["config"])
def test_the_released_schedules(case):
    config = grit.load_recipe(case["config"]).train
    for epoch, wanted in case["lr_at_epoch"].items():
        assert learning_rate(config, int(epoch)) == pytest.approx(wanted, rel=1e-12, abs=1e-18)
    total = sum(learning_rate(config, epoch) for epoch in range(case["max_epoch"]))
    assert total == pytest.approx(case["lr_sum"], rel=1e-9)
    group = build_optimizer(torch.nn.Linear(1, 1), config).param_groups[0]
    assert list(group["betas"]) == case["betas"]
    assert (group["eps"], group["weight_decay"]) == (case["eps"], case["weight_decay"])


def test_linear_schedule():
    config = TrainConfig(epochs=10, warmup_epochs=2, schedule="linear", lr=1.0)
    rates = [learning_rate(config, epoch) for epoch in range(11)]
    assert rates == pytest.approx([1e-6, 0.5, 1.0, 7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8, 0.0])


def test_no_epochs_after_the_warm_up():
    config = TrainConfig(epochs=2, warmup_epochs=2, lr=1.0)
    assert [learning_rate(config, epoch) for epoch in range(3)] == [1e-6, 0.5, 1.0]
