"""Batch normalisation whose statistics are those of the whole batch, also when several processes share it."""

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
        if not self.training or is_one_process():
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
        if not self.training:
            assert self.running_mean is not None
            assert self.running_var is not None
            scale = self.weight * (self.running_var + self.eps).rsqrt()
            return scale, self.bias - self.running_mean * scale
        alone = is_one_process()
        if alone and not torch.compiler.is_compiling():
            self._follow(mean.detach(), deviations.detach() / count, count)
            scale, shift = _Affine.apply(mean, deviations, self.weight, self.bias, count, self.eps)  # type: ignore[no-untyped-call]
            return scale, shift
        total = _same if alone else _total
        rows = total(mean.new_tensor([count]))
        whole = total(mean * count) / rows
        variance = total(deviations + count * (mean - whole).square()) / rows
        self._follow(whole, variance, rows)
        scale = self.weight * (variance + self.eps).rsqrt()
        return scale, self.bias - whole * scale

    @torch.no_grad()
    def _follow(self, mean: Tensor, variance: Tensor, count: Tensor | int) -> None:
        """Let the running statistics follow those of a batch."""
        assert self.running_mean is not None
        assert self.running_var is not None
        assert self.num_batches_tracked is not None
        assert self.momentum is not None
        self.num_batches_tracked += 1
        self.running_mean.lerp_(mean, self.momentum)
        self.running_var.lerp_(variance * (count / (count - 1)), self.momentum)


class _Affine(torch.autograd.Function):
    """scale = γ / sqrt(Δ/R + ε) and shift = β - mean scale, with a derivative of few operations: layers are full of these."""

    @staticmethod
    def forward(
        ctx: Any, mean: Tensor, deviations: Tensor, weight: Tensor, bias: Tensor, count: int, eps: float
    ) -> Any:
        root = torch.rsqrt(deviations / count + eps)
        scale = weight * root
        ctx.save_for_backward(mean, root, scale)
        ctx.count = count
        return scale, torch.addcmul(bias, mean, scale, value=-1)

    @staticmethod
    def backward(ctx: Any, grad_scale: Tensor, grad_shift: Tensor) -> Any:
        mean, root, scale = ctx.saved_tensors
        grad_scale = torch.addcmul(grad_scale, grad_shift, mean, value=-1)
        grad_weight = grad_scale * root
        grad_deviations = grad_weight * scale * root * (-0.5 / ctx.count)
        return grad_shift * -scale, grad_deviations, grad_weight, grad_shift, None, None


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


def _same(value: Tensor) -> Tensor:
    return value
