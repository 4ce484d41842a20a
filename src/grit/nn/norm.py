"""Normalisations over rows: the table `NORMS`.

Batch normalisation takes the statistics of the whole batch, also when several processes share it.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn


def is_one_process() -> bool:
    """Whether no other process has a share of the batch."""
    return not dist.is_available() or not dist.is_initialized() or dist.get_world_size() == 1


class BatchNorm(nn.BatchNorm1d):
    """`torch.nn.BatchNorm1d` over rows, (R, D) -> (R, D).

    In training with several processes, mean and variance are taken over the rows of all of them, on any device (torch's own
    ``SyncBatchNorm`` needs a GPU), so that p processes with a share of a batch each give what one process gives with all of it.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Normalise."""
        if not self.uses_batch_statistics or is_one_process():
            return super().forward(x)
        rows = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x  # neither counts nor sums fit 16 bits
        count = _total(rows.new_tensor([x.shape[0]]))
        mean = _total(rows.sum(0)) / count  # (D,)
        centred = rows - mean
        variance = _total(centred.square().sum(0)) / count  # (D,)
        self.follow(mean, variance * (count / (count - 1)))
        return (centred * (variance + self.eps).rsqrt() * self.weight + self.bias).to(x.dtype)

    @property
    def uses_batch_statistics(self) -> bool:
        """Whether rows are normalised by their own moments: in training, and where no others are kept."""
        return self.training or self.running_mean is None

    def follow(self, mean: Tensor, variance: Tensor) -> None:
        """Let the running statistics follow mean and sample variance of a batch, (D,) each, as torch does."""
        if self.running_mean is None or self.running_var is None or self.num_batches_tracked is None:
            return
        with torch.no_grad():
            self.num_batches_tracked += 1
            # Without a momentum every batch counts the same: torch.optim.swa_utils.update_bn asks for that.
            share = 1 / int(self.num_batches_tracked) if self.momentum is None else self.momentum
            self.running_mean.lerp_(mean, share)
            self.running_var.lerp_(variance, share)


class _SumOverProcesses(torch.autograd.Function):
    """Every process gets the sum; its gradient is the sum of what all of them do with it."""

    @staticmethod
    def forward(context: Any, value: Tensor) -> Tensor:
        total = value.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> Tensor:
        return _total(gradients[0].contiguous())  # which can be differentiated again


def _total(value: Tensor) -> Tensor:
    total: Tensor = _SumOverProcesses.apply(value)  # type: ignore[no-untyped-call]
    return total


# The number of channels -> a module (R, D) -> (R, D).
NORMS: dict[str, Callable[[int], nn.Module]] = {"batch": BatchNorm, "layer": nn.LayerNorm}
