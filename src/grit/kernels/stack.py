"""The fused unit: L consecutive layers of GRIT as one torch operator, and its derivative as another.

What it computes stands in ``cpp/layer_forward.h`` and ``cpp/layer_backward.h``, and is defined by `grit.nn.layer`.
`grit.nn.fused_stack` calls it for modules. CPU, float32 and float64.

Shape letters: N nodes of the batch, P node pairs, H heads, C channels per head, D = H*C, F width of the FFN, L layers.
"""

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from math import inf
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

from grit.kernels.native import Call, Dropout, Mirror, integers, pointers

WEIGHTS = (
    *("query_weight", "query_bias", "key_weight", "value_weight"),
    *("scale_weight", "scale_bias", "shift_weight", "shift_bias", "score", "pair_value", "theta"),
    *("node_out_weight", "node_out_bias", "pair_out_weight", "pair_out_bias"),
    *("ffn_in_weight", "ffn_in_bias", "ffn_out_weight", "ffn_out_bias"),
    *("pair_norm_weight", "pair_norm_bias", "node_norm_weight", "node_norm_bias", "ffn_norm_weight", "ffn_norm_bias"),
)  # of a layer, `LayerTensors` of cpp/stack.h
_PAIR_UPDATE = {"pair_out_weight", "pair_out_bias", "pair_norm_weight", "pair_norm_bias"}
NUM_NORMS = 3  # in a layer: of pairs, of nodes, of the FFN
NUM_SEEDS = 4  # in a layer: of the dropouts on attention weights, pairs, nodes and inside the FFN

_SUM_OVER_PROCESSES = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_double), ctypes.c_int64)
_GIVEN_BACK = ("x_out", "pair_out", "mean", "variance")
_NODES = ("node_sum", "pair_sum", "updated", "fed")
_AFFINE = ("scale", "shift", "inverse_deviation")


class _Stack(Mirror):
    """`Stack` of ``cpp/stack.h``."""

    cpp_name = "stack"
    _fields_ = (
        *integers("layers", "nodes", "heads", "channels", "ffn_width", "threads"),
        *integers("keep", "batch_statistics", "gelu"),
        ("sum_over_processes", _SUM_OVER_PROCESSES),
        *pointers("row_ptr", "key", "seeds"),
        ("clamp", ctypes.c_double),
        ("eps", ctypes.c_double),
        ("attention_dropout", Dropout),
        ("dropout", Dropout),
        *pointers("x", "pair", "log_degree", "weights", "statistics"),
        *pointers(*_GIVEN_BACK, *_NODES, "nodes_out", "pairs_out", "logsumexp", *_AFFINE),
        *pointers("grad_x_out", "grad_pair_out", "grad_x", "grad_pair", "grads", "room"),
    )


class StackOptions(NamedTuple):
    """What the layers of a stack have in common, but for the last one's pairs.

    Attributes:
        heads: H.
        ffn_width: F.
        has_theta: Whether they have a degree scaler.
        update_pairs: Whether the last layer does; the others must.
        clamp: Bound on the logits; None for none.
        attention_dropout: On the attention weights; 0 in evaluation.
        dropout: Elsewhere; 0 in evaluation.
        eps: Of the normalisations.
        gelu: Whether the FFN has GELU instead of ReLU.
    """

    heads: int
    ffn_width: int
    has_theta: bool
    update_pairs: bool
    clamp: float | None
    attention_dropout: float
    dropout: float
    eps: float
    gelu: bool


def weight_shapes(
    width: int, heads: int, ffn_width: int, has_theta: bool, update_pairs: bool
) -> dict[str, tuple[int, ...]]:
    """Shapes of the weights of a layer, in the order of `WEIGHTS`; (0,) for those that it does not have."""
    d, f, c = width, ffn_width, width // heads
    special = {"score": (heads, c), "pair_value": (heads, c, c), "theta": (2, d), "ffn_in_weight": (f, d)}
    special |= {"ffn_in_bias": (f,), "ffn_out_weight": (d, f)}
    usual = {name: (d, d) if name.endswith("weight") and "norm" not in name else (d,) for name in WEIGHTS}
    absent = (set() if has_theta else {"theta"}) | (set() if update_pairs else _PAIR_UPDATE)
    return {name: (0,) if name in absent else special.get(name, usual[name]) for name in WEIGHTS}


class StackOutput(NamedTuple):
    """What the operator gives.

    Attributes:
        x: (N, D), after the last layer.
        pair: (P, D), after the last layer; (0, D) if that does not rewrite pairs.
        mean: (L, 3, D), of the rows that each normalisation saw, or the running mean where that is used.
        variance: (L, 3, D), of those rows as a sample; 0 where running statistics are used.
        affine: (3, L, 3, D), kept for the backward pass: the normalisations as scale, shift, and 1 / deviation.
        nodes: (4, L, N, D), kept as well, as the following ones; without elements if nothing is to be kept.
        nodes_out: (L - 1, N, D), x after every layer but the last.
        pairs_out: (layers that rewrite pairs, P, D), pairs after them, before their normalisation.
        logsumexp: (L, N, H), of the logits.
    """

    x: Tensor
    pair: Tensor
    mean: Tensor
    variance: Tensor
    affine: Tensor
    nodes: Tensor
    nodes_out: Tensor
    pairs_out: Tensor
    logsumexp: Tensor


def _room(x: Tensor, pair: Tensor, layers: int, options: StackOptions, keep: bool) -> list[Tensor]:
    """For nodes, nodes_out, pairs_out and logsumexp; where nothing is kept, layers use the same room one after another."""
    sizes = (layers, layers - 1, layers - 1 + options.update_pairs)
    of_nodes, between, of_pairs = sizes if keep else (min(size, 1) for size in sizes)
    # The largest first: what the allocator has left of the last step's then fits the others, and it need not ask for more.
    pairs_out = pair.new_empty(of_pairs, *pair.shape)
    nodes, nodes_out = x.new_empty(len(_NODES), of_nodes, *x.shape), x.new_empty(between, *x.shape)
    return [nodes, nodes_out, pairs_out, x.new_empty(of_nodes, x.shape[0], options.heads)]


def _empty(x: Tensor, pair: Tensor, layers: int, options: StackOptions, keep: bool) -> StackOutput:
    """The outputs, not yet filled in."""
    width = x.shape[1]
    kept = _room(x, pair, layers, options, keep) if keep else [x.new_empty(0) for _ in range(4)]
    return StackOutput(
        x.new_empty(x.shape),
        pair.new_empty(pair.shape if options.update_pairs else (0, width)),
        x.new_zeros(layers, NUM_NORMS, width),
        x.new_zeros(layers, NUM_NORMS, width),
        x.new_zeros(len(_AFFINE), layers, NUM_NORMS, width),
        *kept,
    )


def _layer_stack(
    x: Tensor,
    pair: Tensor,
    log_degree: Tensor,
    row_ptr: Tensor,
    key: Tensor,
    weights: list[Tensor],
    statistics: list[Tensor],
    seeds: Tensor,
    heads: int,
    ffn_width: int,
    has_theta: bool,
    update_pairs: bool,
    clamp: float | None,
    attention_dropout: float,
    dropout: float,
    eps: float,
    gelu: bool,
    keep: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """L layers -> the fields of `StackOutput`.

    x is (N, D), pair (P, D), log_degree (N,); row_ptr (N + 1,) and key (P,) are those of the pairs. weights are those of every
    layer in the order of `WEIGHTS`, with the shapes of `weight_shapes` and without elements where a layer has none. statistics
    are the running mean and variance of every normalisation (L, 3, 2), (D,) each, or empty: then those of the batch are used,
    over all processes that share it. seeds (L, 4) int64 are those of the dropouts; then come the `StackOptions`. keep asks for
    what the backward pass needs.
    """
    options = StackOptions(
        heads, ffn_width, has_theta, update_pairs, clamp, attention_dropout, dropout, eps, gelu
    )  # fmt: skip
    out = _empty(x, pair, seeds.shape[0], options, keep)
    call = _prepare(x, pair, log_degree, row_ptr, key, weights, statistics, seeds, options, keep)
    nodes, nodes_out, pairs_out, logsumexp = out[5:] if keep else _room(x, pair, seeds.shape[0], options, keep)
    if not keep and update_pairs:
        pairs_out = out.pair  # written over from layer to layer
    _set_kept(call, out.affine, nodes, nodes_out, pairs_out, logsumexp)
    call.set(x_out=out.x, pair_out=out.pair, mean=out.mean, variance=out.variance)
    _run(call, "grit_stack_forward")
    return tuple(out)  # type: ignore[return-value]


layer_stack = torch.library.custom_op("grit::layer_stack", _layer_stack, mutates_args=(), device_types=())


@cache
def _untraced_layer_stack() -> Callable[..., Any]:
    untraced: Callable[..., Any] = torch.compiler.disable(_layer_stack)  # type: ignore[no-untyped-call]
    return untraced


def _layer_stack_on_cpu(*arguments: Any) -> Any:
    """The kernel. Nobody traces it where TorchDynamo was never loaded: loading it takes longer than most predictions."""
    return (_untraced_layer_stack() if "torch._dynamo" in sys.modules else _layer_stack)(*arguments)


torch.library.impl("grit::layer_stack", "cpu", _layer_stack_on_cpu)


@layer_stack.register_fake
def _(x: Tensor, pair: Tensor, *rest: Any) -> tuple[Tensor, ...]:
    *_, seeds = rest[:6]
    return tuple(_empty(x, pair, seeds.shape[0], StackOptions(*rest[6:-1]), rest[-1]))


@torch.library.custom_op("grit::layer_stack_backward", mutates_args=(), device_types="cpu")
def layer_stack_backward(
    grad_x_out: Tensor,
    grad_pair_out: Tensor | None,
    x: Tensor,
    pair: Tensor,
    log_degree: Tensor,
    row_ptr: Tensor,
    key: Tensor,
    weights: list[Tensor],
    statistics: list[Tensor],
    seeds: Tensor,
    mean: Tensor,
    affine: Tensor,
    nodes: Tensor,
    nodes_out: Tensor,
    pairs_out: Tensor,
    logsumexp: Tensor,
    heads: int,
    ffn_width: int,
    has_theta: bool,
    update_pairs: bool,
    clamp: float | None,
    attention_dropout: float,
    dropout: float,
    eps: float,
    gelu: bool,
) -> list[Tensor]:
    """Gradients of x, pair and every weight of `layer_stack`, from those of its x and pair."""
    options = StackOptions(
        heads, ffn_width, has_theta, update_pairs, clamp, attention_dropout, dropout, eps, gelu
    )  # fmt: skip
    call = _prepare(x, pair, log_degree, row_ptr, key, weights, statistics, seeds, options, True)
    _set_kept(call, affine, nodes, nodes_out, pairs_out, logsumexp)
    if grad_pair_out is None and update_pairs:
        grad_pair_out = torch.zeros_like(pair)
    grads = _empty_grads(x, pair, weights)
    call.set(mean=mean, grad_x_out=grad_x_out, grad_pair_out=grad_pair_out, room=x.new_empty(4, *x.shape))
    call.set(grad_x=grads[0], grad_pair=grads[1])
    call.set_table("grads", grads[2:])
    _run(call, "grit_stack_backward")
    return grads


@layer_stack_backward.register_fake
def _(
    grad_x_out: Tensor, grad_pair_out: Tensor | None, x: Tensor, pair: Tensor, log_degree: Tensor, row_ptr: Tensor,
    key: Tensor, weights: list[Tensor], *rest: Any,
) -> list[Tensor]:  # fmt: skip
    return _empty_grads(x, pair, weights)


def _empty_grads(x: Tensor, pair: Tensor, weights: list[Tensor]) -> list[Tensor]:
    of_pair = pair.new_empty(pair.shape)  # the largest first, as in `_room`
    return [x.new_empty(x.shape), of_pair, *(weight.new_empty(weight.shape) for weight in weights)]


def _prepare(
    x: Tensor,
    pair: Tensor,
    log_degree: Tensor,
    row_ptr: Tensor,
    key: Tensor,
    weights: list[Tensor],
    statistics: list[Tensor],
    seeds: Tensor,
    options: StackOptions,
    keep: bool,
) -> Call:
    """A call with its inputs."""
    structure = _Stack(
        layers=seeds.shape[0],
        nodes=x.shape[0],
        heads=options.heads,
        channels=x.shape[1] // options.heads,
        ffn_width=options.ffn_width,
        threads=torch.get_num_threads(),
        keep=keep,
        batch_statistics=not statistics,
        gelu=options.gelu,
        clamp=inf if options.clamp is None else options.clamp,
        eps=options.eps,
        attention_dropout=Dropout.of(options.attention_dropout),
        dropout=Dropout.of(options.dropout),
    )
    if dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1:
        structure.sum_over_processes = _sum_over_processes
    call = Call(structure, x.dtype)
    call.set(x=x, pair=pair, log_degree=log_degree, row_ptr=row_ptr, key=key, seeds=seeds)
    call.set_table("weights", weights)
    call.set_table("statistics", statistics)
    return call


def _set_kept(
    call: Call, affine: Tensor, nodes: Tensor, nodes_out: Tensor, pairs_out: Tensor, logsumexp: Tensor
) -> None:
    call.set(nodes_out=nodes_out, pairs_out=pairs_out, logsumexp=logsumexp)
    call.set(**dict(zip(_NODES, nodes, strict=True)), **dict(zip(_AFFINE, affine, strict=True)))


_failures: list[BaseException] = []  # of sums over processes, raised again when the kernel has returned


def _sum(values: Any, count: int) -> None:
    try:
        array = (ctypes.c_double * count).from_address(ctypes.addressof(values.contents))
        dist.all_reduce(torch.frombuffer(array, dtype=torch.float64))
    except BaseException as error:  # an exception cannot pass through the kernel
        _failures.append(error)


_sum_over_processes = _SUM_OVER_PROCESSES(_sum)


def _run(call: Call, name: str) -> None:
    call.run(name)
    if _failures:
        failure = _failures[0]
        _failures.clear()
        raise failure
