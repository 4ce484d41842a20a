"""The fused form of GRIT's attention and pair update, as operators that torch's autograd, compiler and exporter know.

What it computes is written in ``cpp/pair_attention.h``, and defined by `grit.nn.attention.grit` and `grit.nn.layer`, whose
plain form gives the same numbers. CPU, float32 and float64.

Shape letters: N nodes of the batch, P node pairs, H heads, C channels per head, D = H*C.
"""

import ctypes
from collections.abc import Sequence
from math import inf
from typing import Any, NamedTuple

import torch
from torch import Tensor

from grit.kernels.choice import library, loaded
from grit.kernels.native import SUFFIXES, Call, Dropout, empty_like, integers, operator, pointers

MAX_HEADS, MAX_WIDTH = 32, 1024  # of the kernels' fixed buffers


class PairResult(NamedTuple):
    """What the fused operator gives.

    Attributes:
        node_sum: (N, D), Σ_j α_ij v_j.
        pair_sum: (N, D), Σ_j α_ij ê_ij.
        top: (N, H), largest logit or bound of each row, for the backward pass.
        inverse: (N, H), 1 / Σ_j exp(logit - top), for the backward pass.
        out: (P, D), e + W_out ê + bias; (0, D) if pairs are not rewritten.
        mean: (D,), over the rows of ``out``.
        deviations: (D,), the sum of their squared deviations from it.
        projected: (P, at least 2 D), W_Ew e and W_Eb e, kept for the backward pass; (0, ...) if it computes them again.
    """

    node_sum: Tensor
    pair_sum: Tensor
    top: Tensor
    inverse: Tensor
    out: Tensor
    mean: Tensor
    deviations: Tensor
    projected: Tensor


def fused_is_possible(x: Tensor, pair: Tensor, hidden_dim: int, num_heads: int) -> bool:
    """Whether the fused form can run on these tensors, and is wanted."""
    padded_heads = 1 << (num_heads - 1).bit_length()
    return (
        x.device.type == "cpu"
        and x.dtype in SUFFIXES
        and pair.dtype == x.dtype
        and num_heads <= MAX_HEADS
        and hidden_dim // num_heads * padded_heads <= MAX_WIDTH
        and not torch.is_autocast_enabled("cpu")
        and library() is not None
    )


_NODES = ("x", "weight_query", "bias_query", "weight_key", "weight_value")
_WEIGHTS = ("weight_scale", "bias_scale", "weight_shift", "bias_shift", "score", "weight_out", "bias_out")
_INPUTS = (*_NODES, "pair", "scale", "shift", *_WEIGHTS)
_OPTIONAL = ("scale", "shift", "weight_out", "bias_out")
_HAVE_GRADS = ("node_sum", "pair_sum", "out", "mean", "deviations")


class _Problem(ctypes.Structure):
    """`PairProblem` of ``cpp/pair_attention.h``."""

    _fields_ = (
        *integers("nodes", "heads", "channels", "threads"),
        *pointers("row_ptr", "key_index", *_NODES, "pair", "scale", "shift", *_WEIGHTS),
        ("clamp", ctypes.c_double),
        ("attention_dropout", Dropout),
        ("pair_dropout", Dropout),
        *integers("want_moments"),
        *pointers(*PairResult._fields, *(f"grad_{name}" for name in _HAVE_GRADS)),
        *pointers(*(f"grad_{name}" for name in (*_NODES, "pair", "scale", "shift", *_WEIGHTS))),
    )


def _prepare(
    tensors: Sequence[Tensor | None], clamp: float | None, attention_dropout: float, pair_dropout: float
) -> Call:
    """A call with its inputs: ``tensors`` are those of `pair_attention`, in their order."""
    *inputs, row_ptr, key_index, seeds = tensors
    x, score = inputs[_INPUTS.index("x")], inputs[_INPUTS.index("score")]
    assert x is not None
    assert score is not None
    assert row_ptr is not None
    heads, channels = score.shape
    drawn = (0, 0) if seeds is None else seeds.tolist()
    problem = _Problem(
        nodes=row_ptr.numel() - 1,
        heads=heads,
        channels=channels,
        threads=torch.get_num_threads(),
        clamp=inf if clamp is None else clamp,
        attention_dropout=Dropout.of(attention_dropout, drawn[0]),
        pair_dropout=Dropout.of(pair_dropout, drawn[1]),
    )
    call = Call(problem, x.dtype)
    call.set(row_ptr=row_ptr, key_index=key_index)
    named = dict(zip(_INPUTS, inputs, strict=True))
    call.set(**{name: named.pop(name) for name in _OPTIONAL})
    call.require(**named)
    return call


def _empty_result(
    x: Tensor, pair: Tensor, score: Tensor, rewrites: bool, want_moments: bool, keep_projected: bool
) -> PairResult:
    nodes, (heads, channels) = x.shape[0], score.shape
    width = heads * channels
    measured = width if rewrites and want_moments else 0
    return PairResult(
        node_sum=x.new_empty(nodes, width),
        pair_sum=x.new_empty(nodes, width),
        top=x.new_empty(nodes, heads),
        inverse=x.new_empty(nodes, heads),
        out=pair.new_empty(pair.shape if rewrites else (0, width)),
        mean=pair.new_empty(measured),
        deviations=pair.new_empty(measured),
        projected=pair.new_empty(pair.shape[0] if keep_projected else 0, _projected_width(x.dtype, heads, channels)),
    )


def _projected_width(dtype: torch.dtype, heads: int, channels: int) -> int:
    measure = getattr(loaded(), f"grit_projected_width_{SUFFIXES[dtype]}")
    measure.restype, measure.argtypes = ctypes.c_int64, (ctypes.c_int64, ctypes.c_int64)
    return int(measure(heads, channels))


def _fake(*arguments: Any) -> tuple[Tensor, ...]:
    x, pair, score, weight_out = (arguments[_INPUTS.index(name)] for name in ("x", "pair", "score", "weight_out"))
    return tuple(_empty_result(x, pair, score, weight_out is not None, *arguments[-2:]))


def _fake_backward(
    grads: list[Tensor | None], tensors: list[Tensor | None], outputs: list[Tensor], *options: Any
) -> list[Tensor]:
    return empty_like(*tensors[: len(_INPUTS)])


@operator(fake=_fake_backward)
def pair_attention_backward(
    grads: list[Tensor | None],
    tensors: list[Tensor | None],
    outputs: list[Tensor],
    clamp: float | None,
    attention_dropout: float,
    pair_dropout: float,
    want_moments: bool,
    keep_projected: bool,
) -> list[Tensor]:
    """Gradients of the floating-point tensors of `pair_attention`, in their order."""
    call = _prepare(tensors, clamp, attention_dropout, pair_dropout)
    call.set(**PairResult(*outputs)._asdict())
    named = zip(PairResult._fields, grads, strict=True)
    call.set(**{f"grad_{name}": grad for name, grad in named if name in _HAVE_GRADS})
    wanted = empty_like(*tensors[: len(_INPUTS)])
    call.set(**{f"grad_{name}": tensor for name, tensor in zip(_INPUTS, wanted, strict=True)})
    call.run("grit_pair_backward")
    return wanted


@operator(fake=_fake, backward=pair_attention_backward, constants=(2, 3, 7))
def pair_attention(
    x: Tensor,
    weight_query: Tensor,
    bias_query: Tensor,
    weight_key: Tensor,
    weight_value: Tensor,
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
    keep_projected: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Attention and pair update of one layer -> the fields of `PairResult`.

    x is (N, D), weight_query, bias_query W_Q, weight_key W_K, weight_value W_V; pair (P, D) as the layer before wrote it,
    scale and shift (D,) its normalisation, applied on reading; weight_scale, bias_scale W_Ew, weight_shift, bias_shift W_Eb,
    score (H, C) W_A; weight_out, bias_out W_Eo, or None if pairs are not rewritten; row_ptr and key_index those of the pairs;
    seeds (2,) int64 those of the two dropouts, None if neither is on; want_moments asks for mean and deviations,
    keep_projected for the projection to be kept.
    """
    nodes = (x, weight_query, bias_query, weight_key, weight_value)
    weights = (weight_scale, bias_scale, weight_shift, bias_shift, score, weight_out, bias_out)
    tensors = (*nodes, pair, scale, shift, *weights, row_ptr, key_index, seeds)
    call = _prepare(tensors, clamp, attention_dropout, pair_dropout)
    call.structure.want_moments = want_moments
    result = _empty_result(x, pair, score, weight_out is not None, want_moments, keep_projected)
    call.set(**result._asdict())
    call.run("grit_pair_forward")
    return tuple(result)  # type: ignore[return-value]
