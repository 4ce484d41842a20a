"""The fused form of a layer's node half: what follows the attention, and the feed-forward network.

Both give rows that a batch normalisation follows, with the moments that it needs (``cpp/nodes.h``); their plain form is
`grit.nn.layer`.

Shape letters: N nodes of the batch, H heads, C channels per head, D = H*C, F width of the feed-forward network.
"""

import ctypes
from typing import Any

import torch
from torch import Tensor

from grit.kernels.native import Call, Dropout, below_autograd, empty_like, given, integers, operator, pointers

_MOMENTS = ("out", "mean", "deviations")
_GRADS = tuple(f"grad_{name}" for name in _MOMENTS)
_UPDATE = ("node_sum", "pair_sum", "pair_value", "x", "theta", "log_degree", "weight", "bias")
_UPDATE_GRADS = ("node_sum", "pair_sum", "pair_value", "x", "theta", "weight", "bias")
_FEED = ("in", "scale", "shift", "weight_in", "bias_in", "weight_out", "bias_out")


class _NodeUpdate(ctypes.Structure):
    _fields_ = (
        *integers("rows", "heads", "channels", "threads", "want_moments"),
        ("dropout", Dropout),
        *pointers(*_UPDATE, *_MOMENTS, *_GRADS, *(f"grad_{name}" for name in _UPDATE_GRADS)),
    )


class _FeedForward(ctypes.Structure):
    _fields_ = (
        *integers("rows", "width", "hidden", "threads", "want_moments"),
        ("dropout", Dropout),
        *pointers(*_FEED, *_MOMENTS, *_GRADS, *(f"grad_{name}" for name in _FEED)),
    )


def _empty_rows(like: Tensor, want_moments: bool) -> tuple[Tensor, Tensor, Tensor]:
    """out, mean, deviations."""
    measured = like.shape[1] if want_moments else 0
    return like.new_empty(like.shape), like.new_empty(measured), like.new_empty(measured)


def _update_call(tensors: tuple[Tensor | None, ...], seed: Tensor | None, dropout: float) -> Call:
    pair_value, x = tensors[2], tensors[3]
    assert pair_value is not None
    assert x is not None
    call = Call(
        _NodeUpdate(
            rows=x.shape[0],
            heads=pair_value.shape[0],
            channels=pair_value.shape[1],
            threads=torch.get_num_threads(),
            dropout=Dropout.of(dropout, 0 if seed is None else int(seed)),
        ),
        x.dtype,
    )
    call.set(**dict(zip(_UPDATE, tensors, strict=True)))
    return call


def update_nodes(
    node_sum: Tensor,
    pair_sum: Tensor,
    pair_value: Tensor,
    x: Tensor,
    theta: Tensor | None,
    log_degree: Tensor,
    weight: Tensor,
    bias: Tensor,
    seed: Tensor | None,
    dropout: float,
    want_moments: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """X + W_O (a ⊙ (θ1 + ln(1 + d) θ2)) + b with a = node_sum + W_Ev pair_sum: (N, D), its mean and deviations."""
    call = _update_call((node_sum, pair_sum, pair_value, x, theta, log_degree, weight, bias), seed, dropout)
    call.structure.want_moments = want_moments
    result = _empty_rows(x, want_moments)
    call.set(**dict(zip(_MOMENTS, result, strict=True)))
    call.run("grit_update_nodes")
    return result


def update_nodes_backward(
    grads: list[Tensor],
    has_grads: list[bool],
    node_sum: Tensor,
    pair_sum: Tensor,
    pair_value: Tensor,
    x: Tensor,
    theta: Tensor | None,
    log_degree: Tensor,
    weight: Tensor,
    bias: Tensor,
    seed: Tensor | None,
    out: Tensor,
    mean: Tensor,
    dropout: float,
) -> list[Tensor]:
    """Gradients of node_sum, pair_sum, pair_value, x, theta, weight, bias."""
    call = _update_call((node_sum, pair_sum, pair_value, x, theta, log_degree, weight, bias), seed, dropout)
    call.set(out=out, mean=mean, **given(_GRADS, grads, has_grads))
    wanted = empty_like(node_sum, pair_sum, pair_value, x, theta, weight, bias)
    call.set(**{f"grad_{name}": tensor for name, tensor in zip(_UPDATE_GRADS, wanted, strict=True)})
    call.run("grit_update_nodes_backward")
    return wanted


def _feed_call(tensors: tuple[Tensor, ...], seed: Tensor | None, dropout: float) -> Call:
    rows, weight_in = tensors[0], tensors[3]
    call = Call(
        _FeedForward(
            rows=rows.shape[0],
            width=rows.shape[1],
            hidden=weight_in.shape[0],
            threads=torch.get_num_threads(),
            dropout=Dropout.of(dropout, 0 if seed is None else int(seed)),
        ),
        rows.dtype,
    )
    call.set(**dict(zip(_FEED, tensors, strict=True)))
    return call


def feed_forward(
    rows: Tensor,
    scale: Tensor,
    shift: Tensor,
    weight_in: Tensor,
    bias_in: Tensor,
    weight_out: Tensor,
    bias_out: Tensor,
    seed: Tensor | None,
    dropout: float,
    want_moments: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """E + W2 relu(W1 e + b1) + b2 with e = scale * rows + shift: (N, D), its mean and deviations."""
    call = _feed_call((rows, scale, shift, weight_in, bias_in, weight_out, bias_out), seed, dropout)
    call.structure.want_moments = want_moments
    result = _empty_rows(rows, want_moments)
    call.set(**dict(zip(_MOMENTS, result, strict=True)))
    call.run("grit_feed_forward")
    return result


def feed_forward_backward(
    grads: list[Tensor],
    has_grads: list[bool],
    rows: Tensor,
    scale: Tensor,
    shift: Tensor,
    weight_in: Tensor,
    bias_in: Tensor,
    weight_out: Tensor,
    bias_out: Tensor,
    seed: Tensor | None,
    out: Tensor,
    mean: Tensor,
    dropout: float,
) -> list[Tensor]:
    """Gradients of the first seven arguments of `feed_forward`."""
    tensors = (rows, scale, shift, weight_in, bias_in, weight_out, bias_out)
    call = _feed_call(tensors, seed, dropout)
    call.set(out=out, mean=mean, **given(_GRADS, grads, has_grads))
    wanted = empty_like(*tensors)
    call.set(**{f"grad_{name}": tensor for name, tensor in zip(_FEED, wanted, strict=True)})
    call.run("grit_feed_forward_backward")
    return wanted


class _UpdateDerivative(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Any:
        output = below_autograd(update_nodes_op, *inputs)
        ctx.save_for_backward(*inputs[:9], *output[:2])
        ctx.dropout = inputs[9]
        ctx.set_materialize_grads(False)
        return tuple(output)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        has = [grad is not None for grad in grads]
        saved = ctx.saved_tensors
        made = _update_backward([g for g in grads if g is not None], has, *saved, ctx.dropout)
        node_sum, pair_sum, pair_value, x, theta, weight, bias = made
        theta = None if saved[4] is None else theta
        return node_sum, pair_sum, pair_value, x, theta, None, weight, bias, None, None, None


class _FeedDerivative(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Any:
        output = below_autograd(feed_forward_op, *inputs)
        ctx.save_for_backward(*inputs[:8], *output[:2])
        ctx.dropout = inputs[8]
        ctx.set_materialize_grads(False)
        return tuple(output)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        has = [grad is not None for grad in grads]
        made = _feed_backward([g for g in grads if g is not None], has, *ctx.saved_tensors, ctx.dropout)
        return (*made, None, None, None)


def _fake_update(node_sum: Tensor, pair_sum: Tensor, pair_value: Tensor, x: Tensor, *rest: Any) -> tuple[Tensor, ...]:
    return _empty_rows(x, rest[-1])


def _fake_update_backward(grads: list[Tensor], has_grads: list[bool], *tensors: Any) -> list[Tensor]:
    return empty_like(*tensors[:5], *tensors[6:8])


def _fake_feed(rows: Tensor, *rest: Any) -> tuple[Tensor, ...]:
    return _empty_rows(rows, rest[-1])


def _fake_feed_backward(grads: list[Tensor], has_grads: list[bool], *tensors: Any) -> list[Tensor]:
    return empty_like(*tensors[:7])


_update_backward = operator(update_nodes_backward, _fake_update_backward)
update_nodes_op = operator(update_nodes, _fake_update, _UpdateDerivative)
_feed_backward = operator(feed_forward_backward, _fake_feed_backward)
feed_forward_op = operator(feed_forward, _fake_feed, _FeedDerivative)
