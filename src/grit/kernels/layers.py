"""All layers of a model in a training step as one operation (``cpp/layers.h``): no return to Python between them.

It computes what `grit.nn.layer.GritLayer` computes layer by layer, in the usual case: GRIT's attention, batch normalisation
over one process's batch, pairs that every layer but the last rewrites. Everything else goes layer by layer.

Shape letters: N nodes of the batch, P node pairs, H heads, C channels per head, D = H*C, L layers.
"""

import ctypes
from collections.abc import Sequence
from math import inf
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from grit.kernels.dropout import draw_seed
from grit.kernels.native import Call, Dropout, integers, pointers

WEIGHTS = (
    *("weight_query", "bias_query", "weight_key", "weight_value"),
    *("weight_scale", "bias_scale", "weight_shift", "bias_shift", "score", "pair_value", "theta"),
    *("weight_node", "bias_node", "weight_pair", "bias_pair"),
    *("weight_in", "bias_in", "weight_out", "bias_out"),
    *("weight_pair_norm", "bias_pair_norm", "weight_node_norm", "bias_node_norm", "weight_ffn_norm", "bias_ffn_norm"),
)  # of a layer, `LayerTensors` of cpp/layers.h
UNUSED_IN_LAST = tuple(map(WEIGHTS.index, ("weight_pair", "bias_pair", "weight_pair_norm", "bias_pair_norm")))
NORMS = 3  # in a layer: of pairs, of nodes, of the feed-forward network


class LayersSetting(NamedTuple):
    """What the layers have in common besides the shapes of their weights."""

    num_heads: int
    clamp: float | None
    attention_dropout: float
    dropout: float
    eps: float
    momentum: float


class _Kept(NamedTuple):
    """What the forward pass keeps for the backward pass; see `Layers` of ``cpp/layers.h``."""

    node_sum: Tensor
    pair_sum: Tensor
    updated: Tensor
    fed: Tensor
    nodes_out: Tensor
    top: Tensor
    inverse: Tensor
    pairs_out: Tensor
    mean: Tensor
    deviations: Tensor
    scale: Tensor
    shift: Tensor

    @classmethod
    def empty(cls, x: Tensor, pair: Tensor, layers: int, heads: int) -> "_Kept":
        nodes, width = x.shape
        per_node = (x.new_empty(layers, nodes, width) for _ in range(5))
        per_head = (x.new_empty(layers, nodes, heads) for _ in range(2))
        per_norm = (x.new_empty(layers, NORMS, width) for _ in range(4))
        return cls._make([*per_node, *per_head, pair.new_empty(layers - 1, *pair.shape), *per_norm])


class _Problem(ctypes.Structure):
    """`Layers` of ``cpp/layers.h``."""

    _fields_ = (
        *integers("layers", "nodes", "heads", "channels", "hidden", "threads"),
        *pointers("row_ptr", "key", "seeds"),
        *((name, ctypes.c_double) for name in ("clamp", "eps", "momentum")),
        ("attention_dropout", Dropout),
        ("dropout", Dropout),
        *pointers("x", "pair", "log_degree", "weights", "running"),
        *pointers(*_Kept._fields),
        *pointers("grad", "grad_x", "grad_pair", "grads", "room"),
    )


def run_layers(
    x: Tensor,
    pair: Tensor,
    log_degree: Tensor,
    row_ptr: Tensor,
    key: Tensor,
    weights: Sequence[Tensor | None],
    running: Sequence[Tensor],
    setting: LayersSetting,
) -> Tensor:
    """What x (N, D) is after all layers; the running statistics are updated in place.

    Args:
        x: (N, D).
        pair: (P, D).
        log_degree: (N,).
        row_ptr: (N + 1,) int64, that of the pairs.
        key: (P,) int64, that of the pairs.
        weights: Those of every layer, one layer after another, in the order of `WEIGHTS`; theta may be None in all.
        running: Running mean and variance of the normalisations of every layer, in the order of `WEIGHTS`.
        setting: The rest.
    """
    out: Tensor = _Layers.apply(x, pair, log_degree, row_ptr, key, running, setting, *weights)  # type: ignore[no-untyped-call]
    return out


def draw_seeds(num_layers: int, setting: LayersSetting) -> Tensor:
    """Seeds (L, 4) of the dropouts, drawn in the order in which layers that run one by one would draw them."""
    drops = torch.tensor([[bool(setting.attention_dropout), *[bool(setting.dropout)] * 3]] * num_layers, device="cpu")
    drops[-1, 1] = False  # pairs, which the last layer does not rewrite
    seeds = torch.zeros(num_layers, 4, dtype=torch.int64, device="cpu")
    seeds[drops] = draw_seed(int(drops.sum()))
    return seeds


class _Layers(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        pair: Tensor,
        log_degree: Tensor,
        row_ptr: Tensor,
        key: Tensor,
        running: Sequence[Tensor],
        setting: LayersSetting,
        *weights: Tensor | None,
    ) -> Tensor:
        layers = len(weights) // len(WEIGHTS)
        kept = _Kept.empty(x, pair, layers, setting.num_heads)
        tensors = (*kept, draw_seeds(layers, setting), x, pair, log_degree, row_ptr, key, *weights)
        ctx.setting = setting
        ctx.save_for_backward(*tensors)
        call = _call(tensors, setting)
        call.set_table("running", running)
        call.run("grit_layers_forward")
        torch.autograd.graph.increment_version(running)
        return kept.nodes_out[-1].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        tensors = ctx.saved_tensors
        x, pair, _, _, _, *weights = tensors[len(_Kept._fields) + 1 :]
        unused = {len(weights) - len(WEIGHTS) + number for number in UNUSED_IN_LAST}
        grads = [None if w is None or i in unused else w.new_empty(w.shape) for i, w in enumerate(weights)]
        grad_x, grad_pair = x.new_empty(x.shape), pair.new_empty(pair.shape)
        call = _call(tensors, ctx.setting)
        call.set(grad=grad, grad_x=grad_x, grad_pair=grad_pair, room=x.new_empty(4, *x.shape))
        call.set_table("grads", grads)
        call.run("grit_layers_backward")
        return grad_x, grad_pair, None, None, None, None, None, *grads


def _call(tensors: Sequence[Tensor | None], setting: LayersSetting) -> Call:
    """The operation with what is kept, seeds, inputs and weights."""
    kept, (seeds, x, pair, log_degree, row_ptr, key, *weights) = (
        tensors[: len(_Kept._fields)],
        tensors[len(_Kept._fields) :],
    )
    assert x is not None
    hidden = weights[WEIGHTS.index("weight_in")]
    assert hidden is not None
    problem = _Problem(
        layers=len(weights) // len(WEIGHTS),
        nodes=x.shape[0],
        heads=setting.num_heads,
        channels=x.shape[1] // setting.num_heads,
        hidden=hidden.shape[0],
        threads=torch.get_num_threads(),
        clamp=inf if setting.clamp is None else setting.clamp,
        eps=setting.eps,
        momentum=setting.momentum,
        attention_dropout=Dropout.of(setting.attention_dropout, 0),
        dropout=Dropout.of(setting.dropout, 0),
    )
    call = Call(problem, x.dtype)
    call.set(x=x, pair=pair, log_degree=log_degree, row_ptr=row_ptr, key=key, seeds=seeds)
    call.set(**dict(zip(_Kept._fields, kept, strict=True)))
    call.set_table("weights", weights)
    return call
