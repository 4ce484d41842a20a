"""Optimizers: the table `OPTIMIZERS`."""

from collections.abc import Callable

import torch
from torch import nn
from torch.optim import Optimizer


def _is_fused(parameters: list[nn.Parameter]) -> bool:
    """Whether torch's form with one pass over memory per tensor can be used."""
    return all(parameter.device.type in ("cpu", "cuda") for parameter in parameters)


def _adamw(parameters: list[nn.Parameter], lr: float, weight_decay: float) -> Optimizer:
    """Decay applies to every parameter that has a gradient, biases and norms included, as in the released code."""
    return torch.optim.AdamW(parameters, lr=lr, weight_decay=weight_decay, fused=_is_fused(parameters))


def _adam(parameters: list[nn.Parameter], lr: float, weight_decay: float) -> Optimizer:
    return torch.optim.Adam(parameters, lr=lr, weight_decay=weight_decay, fused=_is_fused(parameters))


def _sgd(parameters: list[nn.Parameter], lr: float, weight_decay: float) -> Optimizer:
    return torch.optim.SGD(parameters, lr=lr, weight_decay=weight_decay, momentum=0.9)


# (parameters, lr, weight_decay) -> the optimizer. Its state must be tensors, so that a run can be resumed.
OPTIMIZERS: dict[str, Callable[[list[nn.Parameter], float, float], Optimizer]] = {
    "adamw": _adamw,
    "adam": _adam,
    "sgd": _sgd,
}
