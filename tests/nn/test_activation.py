from math import erf, sqrt

import pytest
import torch

import grit
from grit.nn.activation import activation_function

POINTS = [-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0]


def test_relu():
    got = activation_function("relu")(torch.tensor(POINTS, dtype=torch.float64))
    assert got.tolist() == [max(0.0, z) for z in POINTS]


def test_gelu_is_the_exact_one():
    got = activation_function("gelu")(torch.tensor(POINTS, dtype=torch.float64))
    wanted = [z * (1 + erf(z / sqrt(2))) / 2 for z in POINTS]  # z times the normal distribution function
    torch.testing.assert_close(got, torch.tensor(wanted, dtype=torch.float64), rtol=1e-12, atol=1e-12)


def test_unknown():
    with pytest.raises(grit.GritError, match="unknown activation 'swish'; there are relu, gelu"):
        activation_function("swish")
