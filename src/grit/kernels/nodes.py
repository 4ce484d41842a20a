"""The fused form of a layer's node half: what follows the attention, and the feed-forward network.

Both give rows that a batch normalisation follows, with the moments that it needs (``cpp/nodes.h``); their plain form is
`grit.nn.layer`.

Shape letters: N nodes of the batch, H heads, C channels per head, D = H*C, F width of the feed-forward network.
"""

import ctypes
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from grit.kernels.native import Call, Dropout, empty_like, integers, operator, pointers

_MOMENTS = ("out", "mean", "deviations")
_UPDATE = ("node_sum", "pair_sum", "pair_value", "x", "theta", "log_degree", "weight", "bias")
_UPDATE_GRADS = tuple(name for name in _UPDATE if name != "log_degree")
_FEED = ("in", "scale", "shift", "weight_in", "bias_in", "weight_out", "bias_out")


def _gradients(names: Sequence[str]) -> list[str]:
    return [f"grad_{name}" for name in names]


class _NodeUpdate(ctypes.Structure):
    _fields_ = (
        *integers("rows", "heads", "channels", "threads", "want_moments"),
        ("dropout", Dropout),
        *pointers(*_UPDATE, *_MOMENTS, *_gradients(_MOMENTS), *_gradients(_UPDATE_GRADS)),
    )


class _FeedForward(ctypes.Structure):
    _fields_ = (
        *integers("rows", "width", "hidden", "threads", "want_moments"),
        ("dropout", Dropout),
        *pointers(*_FEED, *_MOMENTS, *_gradients(_MOMENTS), *_gradients(_FEED)),
    )


def _update_call(tensors: Sequence[Tensor | None], dropout: float) -> Call:
    """A call with its inputs: ``tensors`` are those of `update_nodes`, in their order."""
    *inputs, seed = tensors
    pair_value, x = inputs[2], inputs[3]
    assert pair_value is not None
    assert x is not None
    sizes = {"rows": x.shape[0], "heads": pair_value.shape[0], "channels": pair_value.shape[1]}
    return _call(_NodeUpdate(**sizes, threads=torch.get_num_threads()), x, _UPDATE, inputs, seed, dropout)


def _feed_call(tensors: Sequence[Tensor | None], dropout: float) -> Call:
    """A call with its inputs: ``tensors`` are those of `feed_forward`, in their order."""
    *inputs, seed = tensors
    rows, weight_in = inputs[0], inputs[3]
    assert rows is not None
    assert weight_in is not None
    sizes = {"rows": rows.shape[0], "width": rows.shape[1], "hidden": weight_in.shape[0]}
    return _call(_FeedForward(**sizes, threads=torch.get_num_threads()), rows, _FEED, inputs, seed, dropout)


def _call(
    structure: _NodeUpdate | _FeedForward,
    like: Tensor,
    names: Sequence[str],
    inputs: Sequence[Tensor | None],
    seed: Tensor | None,
    dropout: float,
) -> Call:
    structure.dropout = Dropout.of(dropout, 0 if seed is None else int(seed))
    call = Call(structure, like.dtype)
    named = dict(zip(names, inputs, strict=True))
    call.set(theta=named.pop("theta", None))
    call.require(**named)
    return call


def _forward(call: Call, name: str, like: Tensor, want_moments: bool) -> tuple[Tensor, Tensor, Tensor]:
    call.structure.want_moments = want_moments
    result = _empty_rows(like, want_moments)
    call.set(**dict(zip(_MOMENTS, result, strict=True)))
    call.run(name)
    return result


def _backward(
    call: Call, name: str, grads: Sequence[Tensor | None], outputs: Sequence[Tensor], wanted: dict[str, Tensor]
) -> None:
    call.set(**dict(zip(_MOMENTS, outputs, strict=True)))
    call.set(**dict(zip(_gradients(_MOMENTS), grads, strict=True)))
    call.set(**{f"grad_{key}": tensor for key, tensor in wanted.items() if key != "log_degree"})
    call.run(name)


def _empty_rows(like: Tensor, want_moments: bool) -> tuple[Tensor, Tensor, Tensor]:
    """out, mean, deviations."""
    measured = like.shape[1] if want_moments else 0
    return like.new_empty(like.shape), like.new_empty(measured), like.new_empty(measured)


def _fake_update(*arguments: Any) -> tuple[Tensor, ...]:
    return _empty_rows(arguments[_UPDATE.index("x")], arguments[-1])


def _fake_feed(rows: Tensor, *rest: Any) -> tuple[Tensor, ...]:
    return _empty_rows(rows, rest[-1])


def _fake_backward(
    grads: list[Tensor | None], tensors: list[Tensor | None], outputs: list[Tensor], *options: Any
) -> list[Tensor]:
    return empty_like(*tensors[:-1])


@operator(fake=_fake_backward)
def update_nodes_backward(
    grads: list[Tensor | None],
    tensors: list[Tensor | None],
    outputs: list[Tensor],
    dropout: float,
    want_moments: bool,
) -> list[Tensor]:
    """Gradients of the tensors of `update_nodes`; that of log_degree is not computed."""
    wanted = empty_like(*tensors[:-1])
    call = _update_call(tensors, dropout)
    _backward(call, "grit_update_nodes_backward", grads, outputs, dict(zip(_UPDATE, wanted, strict=True)))
    return wanted


@operator(fake=_fake_update, backward=update_nodes_backward)
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
    call = _update_call((node_sum, pair_sum, pair_value, x, theta, log_degree, weight, bias, seed), dropout)
    return _forward(call, "grit_update_nodes", x, want_moments)


@operator(fake=_fake_backward)
def feed_forward_backward(
    grads: list[Tensor | None],
    tensors: list[Tensor | None],
    outputs: list[Tensor],
    dropout: float,
    want_moments: bool,
) -> list[Tensor]:
    """Gradients of the tensors of `feed_forward`."""
    wanted = empty_like(*tensors[:-1])
    call = _feed_call(tensors, dropout)
    _backward(call, "grit_feed_forward_backward", grads, outputs, dict(zip(_FEED, wanted, strict=True)))
    return wanted


@operator(fake=_fake_feed, backward=feed_forward_backward)
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
    call = _feed_call((rows, scale, shift, weight_in, bias_in, weight_out, bias_out, seed), dropout)
    return _forward(call, "grit_feed_forward", rows, want_moments)
