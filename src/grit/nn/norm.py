"""Batch normalisation whose statistics are those of the whole batch, also when several processes share it."""

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn


class BatchNorm(nn.BatchNorm1d):
    """`torch.nn.BatchNorm1d` over rows, (R, D) -> (R, D).

    In training with several processes, mean and variance are taken over the rows of all of them, on any device (torch's own
    ``SyncBatchNorm`` needs a GPU), so that p processes with a share of a batch each give what one process gives with all of it.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Normalise."""
        if not self.training or not dist.is_available() or not dist.is_initialized() or dist.get_world_size() == 1:
            return super().forward(x)
        rows = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x  # neither counts nor sums fit 16 bits
        count = _total(rows.new_tensor([x.shape[0]]))
        mean = _total(rows.sum(0)) / count  # (D,)
        centred = rows - mean
        variance = _total(centred.square().sum(0)) / count  # (D,)
        self._follow(mean, variance, count)
        return (centred * (variance + self.eps).rsqrt() * self.weight + self.bias).to(x.dtype)

    def as_affine(self, mean: Tensor, deviations: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """The same normalisation as ``rows * scale + shift``, from the rows' moments: scale and shift, both (D,).

        Args:
            mean: (D,), over this process's rows.
            deviations: (D,), the sum of their squared deviations from it.
            count: How many rows there are.

        In evaluation the moments are not read.
        """
        assert self.running_mean is not None
        assert self.running_var is not None
        if self.training:
            rows = mean.new_tensor([count])
            if dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1:
                local, rows = mean, _total(rows)
                mean = _total(local * count) / rows
                deviations = _total(deviations + count * (local - mean).square())
            variance = deviations / rows
            self._follow(mean, variance, rows)
        else:
            mean, variance = self.running_mean, self.running_var
        scale = self.weight * (variance + self.eps).rsqrt()
        return scale, self.bias - mean * scale

    @torch.no_grad()
    def _follow(self, mean: Tensor, variance: Tensor, count: Tensor) -> None:
        """Let the running statistics follow those of a batch."""
        assert self.running_mean is not None
        assert self.running_var is not None
        assert self.num_batches_tracked is not None
        assert self.momentum is not None
        self.num_batches_tracked += 1
        self.running_mean.lerp_(mean, self.momentum)
        self.running_var.lerp_(variance * (count / (count - 1)), self.momentum)


class _SumOverProcesses(torch.autograd.Function):
    """Every process gets the sum; its gradient is the sum of what all of them do with it."""

    @staticmethod
    def forward(context: Any, value: Tensor) -> Tensor:
        total = value.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> Tensor:
        total = gradients[0].contiguous().clone()
        dist.all_reduce(total)
        return total


def _total(value: Tensor) -> Tensor:
    total: Tensor = _SumOverProcesses.apply(value)  # type: ignore[no-untyped-call]
    return total
