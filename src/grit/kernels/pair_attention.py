"""The fused form of GRIT's attention and pair update, as operators that torch's autograd, compiler and exporter know.

What it computes is written in ``cpp/pair_attention.h``, and defined by `grit.nn.attention.grit` and `grit.nn.layer`, whose
plain form gives the same numbers. CPU, float32 and float64.

Shape letters: N nodes of the batch, P node pairs, H heads, C channels per head, D = H*C.
"""

import ctypes
from math import inf
from typing import NamedTuple

import torch
from torch import Tensor

from grit.kernels.choice import library
from grit.kernels.dropout import threshold

MAX_HEADS, MAX_WIDTH = 32, 1024  # of the kernels' fixed buffers

_C = {torch.float32: (ctypes.c_float, "float"), torch.float64: (ctypes.c_double, "double")}


class PairResult(NamedTuple):
    """What the fused operator gives.

    Attributes:
        node_sum: (N, D), Σ_j α_ij v_j.
        pair_sum: (N, D), Σ_j α_ij ê_ij.
        top, inverse: (N, H), of the softmax, for the backward pass.
        out: (P, D), e + W_out ê + bias; (0, D) if pairs are not rewritten.
        mean, deviations: (D,), over the rows of ``out``: the mean, and the sum of squared deviations from it.
    """

    node_sum: Tensor
    pair_sum: Tensor
    top: Tensor
    inverse: Tensor
    out: Tensor
    mean: Tensor
    deviations: Tensor


def fused_is_possible(x: Tensor, pair: Tensor, hidden_dim: int, num_heads: int) -> bool:
    """Whether the fused form can run on these tensors, and is wanted."""
    padded_heads = 1 << (num_heads - 1).bit_length()
    return (
        x.device.type == "cpu"
        and x.dtype in _C
        and pair.dtype == x.dtype
        and num_heads <= MAX_HEADS
        and hidden_dim // num_heads * padded_heads <= MAX_WIDTH
        and not torch.is_autocast_enabled("cpu")
        and library() is not None
    )


class _Dropout(ctypes.Structure):
    _fields_ = (("seed", ctypes.c_uint32), ("threshold", ctypes.c_uint32), ("scale", ctypes.c_double))


_POINTERS_IN = (
    *("pair", "scale", "shift", "weight_scale", "bias_scale", "weight_shift", "bias_shift", "score"),
    *("weight_out", "bias_out"),
)
_POINTERS_OUT = ("node_sum", "pair_sum", "top", "inverse", "out", "mean", "deviations")
_GRADS_IN = ("grad_node_sum", "grad_pair_sum", "grad_out", "grad_mean", "grad_deviations")
_GRADS_OUT = (
    *("grad_pair", "grad_scale", "grad_shift", "grad_weight_scale", "grad_bias_scale", "grad_weight_shift"),
    *("grad_bias_shift", "grad_score", "grad_weight_out", "grad_bias_out"),
)


class _Problem(ctypes.Structure):
    """`PairProblem` of ``cpp/pair_attention.h``, field by field."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("nodes", "heads", "channels", "threads")),
        *((name, ctypes.c_void_p) for name in ("row_ptr", "key_index", "query", "key", "value")),
        ("node_stride", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in _POINTERS_IN),
        ("clamp", ctypes.c_double),
        ("attention_dropout", _Dropout),
        ("pair_dropout", _Dropout),
        ("want_moments", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in (*_POINTERS_OUT, *_GRADS_IN, "grad_query", "grad_key", "grad_value")),
        ("grad_node_stride", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in _GRADS_OUT),
    )


class _Call:
    """A problem being filled in; keeps the tensors alive whose addresses it holds."""

    def __init__(self, like: Tensor, score: Tensor, row_ptr: Tensor, key_index: Tensor) -> None:
        self.suffix = _C[like.dtype][1]
        self.kept: list[Tensor] = []
        heads, channels = score.shape
        self.problem = _Problem(
            nodes=row_ptr.numel() - 1, heads=heads, channels=channels, threads=torch.get_num_threads()
        )
        self.set(row_ptr=row_ptr, key_index=key_index)

    def set(self, **tensors: Tensor | None) -> None:
        for name, tensor in tensors.items():
            if tensor is None:
                continue
            tensor = tensor.contiguous()
            self.kept.append(tensor)
            setattr(self.problem, name, tensor.data_ptr())

    def options(self, seeds: Tensor | None, clamp: float | None, attention_dropout: float, pair_dropout: float) -> None:
        self.problem.clamp = inf if clamp is None else clamp
        drawn = (0, 0) if seeds is None else seeds.tolist()
        for name, p, seed in zip(
            ("attention_dropout", "pair_dropout"), (attention_dropout, pair_dropout), drawn, strict=True
        ):
            setattr(self.problem, name, _Dropout(seed, threshold(p), 0.0 if p == 1 else 1 / (1 - p)))

    def run(self, name: str) -> None:
        kernels = library()
        assert kernels is not None
        getattr(kernels, f"{name}_{self.suffix}")(ctypes.byref(self.problem))


@torch.library.custom_op("grit::pair_attention", mutates_args=(), device_types="cpu")
def pair_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    pair: Tensor,
    scale: Tensor | None,
    shift: Tensor | None,
    weight_scale: Tensor,
    bias_scale: Tensor,
    weight_shift: Tensor,
    bias_shift: Tensor,
    score: Tensor,
    weight_out: Tensor | None,
    bias_out: Tensor | None,
    row_ptr: Tensor,
    key_index: Tensor,
    seeds: Tensor | None,
    clamp: float | None,
    attention_dropout: float,
    pair_dropout: float,
    want_moments: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Attention and pair update of one layer -> the fields of `PairResult`.

    query, key, value are (N, D); pair (P, D) as the layer before wrote it, scale and shift (D,) its normalisation, applied
    on reading; weight_scale, bias_scale W_Ew, weight_shift, bias_shift W_Eb, score (H, C) W_A; weight_out, bias_out W_Eo,
    or None if pairs are not rewritten; row_ptr and key_index those of the pairs; seeds (2,) int64 those of the two
    dropouts, None if neither is on; want_moments asks for mean and deviations.
    """
    call = _Call(query, score, row_ptr, key_index)
    call.set(query=query, key=key, value=value, pair=pair, scale=scale, shift=shift, score=score)
    call.set(weight_scale=weight_scale, bias_scale=bias_scale, weight_shift=weight_shift, bias_shift=bias_shift)
    call.set(weight_out=weight_out, bias_out=bias_out)
    call.options(seeds, clamp, attention_dropout, pair_dropout)
    call.problem.node_stride = query.shape[1]
    call.problem.want_moments = want_moments
    result = _empty_result(query, pair, score, weight_out is not None, want_moments)
    call.set(**result._asdict())
    call.run("grit_pair_forward")
    return tuple(result)  # type: ignore[return-value]


@pair_attention.register_fake
def _(query, key, value, pair, *rest):  # type: ignore[no-untyped-def]
    score, weight_out, want_moments = rest[6], rest[7], rest[-1]
    return tuple(_empty_result(query, pair, score, weight_out is not None, want_moments))


def _empty_result(query: Tensor, pair: Tensor, score: Tensor, rewrites: bool, want_moments: bool) -> PairResult:
    nodes, width = query.shape
    heads = score.shape[0]
    measured = width if rewrites and want_moments else 0
    return PairResult(
        node_sum=query.new_empty(nodes, width),
        pair_sum=query.new_empty(nodes, width),
        top=query.new_empty(nodes, heads),
        inverse=query.new_empty(nodes, heads),
        out=pair.new_empty(pair.shape if rewrites else (0, width)),
        mean=pair.new_empty(measured),
        deviations=pair.new_empty(measured),
    )


@torch.library.custom_op("grit::pair_attention_backward", mutates_args=(), device_types="cpu")
def pair_attention_backward(
    grads: list[Tensor],
    has_grads: list[bool],
    query: Tensor,
    key: Tensor,
    value: Tensor,
    pair: Tensor,
    scale: Tensor | None,
    shift: Tensor | None,
    weight_scale: Tensor,
    bias_scale: Tensor,
    weight_shift: Tensor,
    bias_shift: Tensor,
    score: Tensor,
    weight_out: Tensor | None,
    bias_out: Tensor | None,
    row_ptr: Tensor,
    key_index: Tensor,
    seeds: Tensor | None,
    node_sum: Tensor,
    pair_sum: Tensor,
    top: Tensor,
    inverse: Tensor,
    out: Tensor,
    mean: Tensor,
    clamp: float | None,
    attention_dropout: float,
    pair_dropout: float,
) -> list[Tensor]:
    """Gradients of query, key, value, pair, scale, shift, and of the weights in the order of `pair_attention`."""
    call = _Call(query, score, row_ptr, key_index)
    call.set(query=query, key=key, value=value, pair=pair, scale=scale, shift=shift, score=score)
    call.set(weight_scale=weight_scale, bias_scale=bias_scale, weight_shift=weight_shift, bias_shift=bias_shift)
    call.set(weight_out=weight_out, bias_out=bias_out)
    call.options(seeds, clamp, attention_dropout, pair_dropout)
    call.set(node_sum=node_sum, pair_sum=pair_sum, top=top, inverse=inverse, out=out, mean=mean)
    given = iter(grads)
    call.set(**{name: next(given) for name, has in zip(_GRADS_IN, has_grads, strict=True) if has})
    wanted = _empty_grads(
        query,
        key,
        value,
        pair,
        scale,
        shift,
        weight_scale,
        bias_scale,
        weight_shift,
        bias_shift,
        score,
        weight_out,
        bias_out,
    )
    names = ("grad_query", "grad_key", "grad_value", *_GRADS_OUT)
    call.set(**{name: tensor for name, tensor in zip(names, wanted, strict=True) if tensor.numel()})
    call.problem.node_stride = call.problem.grad_node_stride = query.shape[1]
    call.run("grit_pair_backward")
    return wanted


@pair_attention_backward.register_fake
def _(grads, has_grads, *tensors):  # type: ignore[no-untyped-def]
    return _empty_grads(*tensors[:13])


def _empty_grads(*tensors: Tensor | None) -> list[Tensor]:
    """One for each, of no elements where there is none."""
    like = tensors[0]
    assert like is not None
    return [
        like.new_empty(0) if t is None else torch.empty_like(t, memory_format=torch.contiguous_format) for t in tensors
    ]


def _remember(ctx, inputs, output):  # type: ignore[no-untyped-def]
    *tensors, clamp, attention_dropout, pair_dropout, _ = inputs
    node_sum, pair_sum, top, inverse, out, mean, _ = output
    ctx.save_for_backward(*tensors, node_sum, pair_sum, top, inverse, out, mean)
    ctx.options = (clamp, attention_dropout, pair_dropout)
    ctx.set_materialize_grads(False)
    ctx.mark_non_differentiable(top, inverse)


def _backward(ctx, *grads):  # type: ignore[no-untyped-def]
    saved = ctx.saved_tensors
    node_sum, pair_sum, _, _, out, mean, deviations = grads
    wanted = (node_sum, pair_sum, out, mean, deviations)
    has = [grad is not None for grad in wanted]
    made = pair_attention_backward([g for g in wanted if g is not None], has, *saved, *ctx.options)
    given = [None if t is None else g for t, g in zip(saved[:13], made, strict=True)]
    return (*given, *[None] * 7)


pair_attention.register_autograd(_backward, setup_context=_remember)
