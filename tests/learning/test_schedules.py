"""Plateaus: the learning rate falls as torch's own scheduler lets it fall."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau, StepLR

from grit.learning.schedules import plateaus
from grit.recipe.config import PlateauConfig, TrainConfig


def rates_of_torch(values, factor, patience, mode):
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler = ReduceLROnPlateau(optimizer, mode, factor=factor, patience=patience, eps=0.0)
    rates = [1.0]
    for value in values:
        scheduler.step(value)
        rates.append(optimizer.param_groups[0]["lr"])
    return rates


@pytest.mark.parametrize(("mode", "sign"), [("min", 1), ("max", -1)])
@given(
    values=st.lists(st.sampled_from([3.0, 2.0, 2.00001, 1.99999, 1.0, 0.5]), max_size=30), patience=st.integers(0, 4)
)
def test_the_rate_falls_as_with_torch(mode, sign, values, patience):
    costs = [sign * value for value in values]
    config = TrainConfig(
        lr=1.0, schedule="constant", warmup_epochs=0, plateau=PlateauConfig(factor=0.5, patience=patience)
    )
    rates = [config.learning_rate(epoch, costs[:epoch]) for epoch in range(len(costs) + 1)]
    assert rates == rates_of_torch(values, 0.5, patience, mode)


def test_training_ends_when_the_rate_has_fallen():
    config = TrainConfig(lr=1e-3, plateau=PlateauConfig(factor=0.5, patience=0, min_lr=4e-4))
    assert plateaus([1.0, 1.0, 1.0], 0) == 2
    assert not config.has_fallen([1.0, 1.0])
    assert config.has_fallen([1.0, 1.0, 1.0])
    assert not TrainConfig().has_fallen([1.0] * 1000)


def test_steps_are_those_of_torch():
    """As the baselines of PCQM4Mv2: a quarter after 30, 60 and 90 of 100 epochs; also of 10 and of 50 epochs."""
    for epochs in (10, 50, 100):
        optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
        scheduler = StepLR(optimizer, step_size=3 * epochs // 10, gamma=0.25)
        config = TrainConfig(lr=1.0, schedule="steps", warmup_epochs=0, epochs=epochs)
        for epoch in range(epochs):
            assert config.learning_rate(epoch) == scheduler.get_last_lr()[0]
            optimizer.step()
            scheduler.step()


def test_halving_is_in_six_steps_of_equal_length():
    config = TrainConfig(lr=1.0, schedule="halving", warmup_epochs=0, epochs=300)
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler = StepLR(optimizer, step_size=50, gamma=0.5)
    for epoch in range(300):
        assert config.learning_rate(epoch) == optimizer.param_groups[0]["lr"]
        optimizer.step()
        scheduler.step()
