"""The optimizer and the learning rate of the released recipes."""

from math import cos, pi

import torch
from torch import nn

from grit.recipe.config import TrainConfig


def learning_rate(config: TrainConfig, epoch: int) -> float:
    """Learning rate throughout ``epoch``, counted from 0.

    Warm-up rises linearly and starts at a millionth of the peak, so that epoch 0 hardly learns, as the released schedule
    has it. Afterwards half a cosine, or a straight line, to 0 at the last epoch's end.
    """
    warmup, epochs = config.warmup_epochs, config.epochs
    if epoch < warmup:
        return config.lr * max(1e-6, epoch / warmup)
    done = (epoch - warmup) / max(1, epochs - warmup)
    if config.schedule == "cosine":
        return config.lr * max(0.0, 0.5 * (1 + cos(pi * done)))
    return config.lr * max(0.0, 1 - done)


def build_optimizer(model: nn.Module, config: TrainConfig) -> torch.optim.AdamW:
    """AdamW over all parameters; decay applies to every one that has a gradient, biases and norms included."""
    parameters = list(model.parameters())
    return torch.optim.AdamW(
        parameters,
        lr=learning_rate(config, 0),
        weight_decay=config.weight_decay,
        fused=all(
            parameter.device.type in ("cpu", "cuda") for parameter in parameters
        ),  # one pass over memory per tensor
    )
