"""Layers in the fused unit: their weights go in, its gradients come out, their running statistics follow.

`grit.nn.can_fuse` decides whether layers may come here; `grit.kernels.stack` is the unit.

Shape letters: N nodes of the batch, P node pairs, H heads, C channels per head, D channels, L layers.
"""

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any, NamedTuple, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from grit.errors import GritError
from grit.graphs.pairs import Pairs
from grit.kernels.dropout import draw_seed, dropout
from grit.kernels.stack import NORMS, PAIR_UPDATE, SEEDS, WEIGHTS, StackOutput, layer_stack, layer_stack_backward
from grit.nn.attention.contract import check_rows
from grit.nn.attention.grit import grit_attention
from grit.nn.norm import BatchNorm, is_one_process


class FusableLayer(Protocol):
    """What is read of a `grit.nn.layer.GritLayer`."""

    attention: Any
    degree_scaler: Any
    node_out: nn.Linear
    pair_out: nn.Linear
    ffn_in: nn.Linear
    ffn_out: nn.Linear
    pair_norm: Any
    node_norm: Any
    ffn_norm: Any
    activation: Any
    update_pairs: bool
    dropout: float
    training: bool

    def named_modules(self) -> Iterator[tuple[str, nn.Module]]:
        """The layer and its parts."""

    def parameters(self) -> Iterator[nn.Parameter]:
        """Its weights."""


class StackOptions(NamedTuple):
    """What the layers of a stack have in common."""

    heads: int
    clamp: float | None
    attention_dropout: float
    dropout: float
    eps: float
    gelu: bool
    batch_statistics: bool
    ffn_width: int


def stack_options(layer: FusableLayer) -> StackOptions:
    """Those of a layer as it is now, in training or evaluation."""
    attention = layer.attention
    return StackOptions(
        heads=attention.num_heads,
        clamp=attention.clamp,
        attention_dropout=attention.attention_dropout if attention.training else 0.0,
        dropout=layer.dropout if layer.training else 0.0,
        eps=layer.node_norm.eps,
        gelu=layer.activation is F.gelu,
        batch_statistics=layer.node_norm.uses_batch_statistics,
        ffn_width=layer.ffn_in.out_features,
    )


def layer_tensors(layer: FusableLayer) -> list[tuple[str, Tensor | None, tuple[int, ...] | None]]:
    """Name, value and expected shape of every tensor of a layer: those of `WEIGHTS`, then what must not be there, then the
    statistics. None where there is none, or must be none.
    """
    attention, scaler = layer.attention, layer.degree_scaler
    heads, channels = attention.num_heads, attention.head_dim
    d, f = heads * channels, layer.ffn_in.out_features
    norms = {"pair_norm": layer.pair_norm, "node_norm": layer.node_norm, "ffn_norm": layer.ffn_norm}
    statistics = None if layer.node_norm.uses_batch_statistics else (d,)
    return [
        ("attention.query.weight", attention.query.weight, (d, d)),
        ("attention.query.bias", attention.query.bias, (d,)),
        ("attention.key.weight", attention.key.weight, (d, d)),
        ("attention.value.weight", attention.value.weight, (d, d)),
        ("attention.pair_scale.weight", attention.pair_scale.weight, (d, d)),
        ("attention.pair_scale.bias", attention.pair_scale.bias, (d,)),
        ("attention.pair_shift.weight", attention.pair_shift.weight, (d, d)),
        ("attention.pair_shift.bias", attention.pair_shift.bias, (d,)),
        ("attention.score", attention.score, (heads, channels)),
        ("attention.pair_value", attention.pair_value, (heads, channels, channels)),
        ("degree_scaler.theta", scaler and scaler.theta, scaler and (2, d)),
        ("node_out.weight", layer.node_out.weight, (d, d)),
        ("node_out.bias", layer.node_out.bias, (d,)),
        ("pair_out.weight", layer.pair_out.weight, (d, d)),
        ("pair_out.bias", layer.pair_out.bias, (d,)),
        ("ffn_in.weight", layer.ffn_in.weight, (f, d)),
        ("ffn_in.bias", layer.ffn_in.bias, (f,)),
        ("ffn_out.weight", layer.ffn_out.weight, (d, f)),
        ("ffn_out.bias", layer.ffn_out.bias, (d,)),
        *((f"{name}.{what}", getattr(norm, what), (d,)) for name, norm in norms.items() for what in ("weight", "bias")),
        ("attention.key.bias", attention.key.bias, None),
        ("attention.value.bias", attention.value.bias, None),
        *(
            (f"{name}.{what}", getattr(norm, what) if statistics else None, statistics)
            for name, norm in norms.items()
            for what in ("running_mean", "running_var")
        ),
    ]


def run_stack(
    layers: Sequence[FusableLayer], x: Tensor, pair: Tensor, pairs: Pairs, log_degree: Tensor
) -> tuple[Tensor, Tensor]:
    """What the layers make of x (N, D) and pair (P, D), one after another: x (N, D), pair (P, D)."""
    check_rows(x, pair, pairs)
    if torch.is_grad_enabled() and not (x.requires_grad or pair.requires_grad):
        frozen = len(list(takewhile(lambda layer: not any(p.requires_grad for p in layer.parameters()), layers)))
        if 0 < frozen < len(layers):  # no backward pass goes there, and nothing need be kept for it
            with torch.no_grad():
                x, pair = run_stack(layers[:frozen], x, pair, pairs, log_degree)
            layers = layers[frozen:]
    options = stack_options(layers[0])
    weights, statistics = [], []
    for number, layer in enumerate(layers):
        tensors = [tensor for _, tensor, _ in layer_tensors(layer)]
        of_layer = [x.new_empty(0) if tensor is None else tensor for tensor in tensors[: len(WEIGHTS)]]
        if number + 1 == len(layers) and not layer.update_pairs:
            for unused in PAIR_UPDATE:
                of_layer[unused] = x.new_empty(0)
        weights += of_layer
        if not options.batch_statistics:
            statistics += tensors[-2 * NORMS :]
    keep = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (x, pair, *weights))
    out = StackOutput(
        *layer_stack(
            x,
            pair,
            log_degree.to(x.dtype),
            pairs.row_ptr,
            pairs.key,
            weights,
            statistics,
            _draw_seeds(options, len(layers), layers[-1].update_pairs),
            *options[:6],
            keep,
        )
    )
    if options.batch_statistics:
        _follow(layers, out)
    return out.x, out.pair if layers[-1].update_pairs else pair


def _draw_seeds(options: StackOptions, num_layers: int, rewrites: bool) -> Tensor:
    """Seeds (L, 4) of the dropouts, drawn in the order in which layers that run plain would draw them."""
    in_layer = [bool(options.attention_dropout), *[bool(options.dropout)] * (SEEDS - 1)]
    wanted = [at for at, drops in enumerate(in_layer * num_layers) if drops]
    unused = (num_layers - 1) * SEEDS + 1  # of pairs that the last layer does not rewrite
    if not rewrites and unused in wanted:
        wanted.remove(unused)
    seeds = torch.zeros(num_layers * SEEDS, dtype=torch.int64, device="cpu")
    if wanted:
        seeds = seeds.index_copy(0, torch.tensor(wanted), draw_seed(len(wanted)))
    return seeds.view(num_layers, SEEDS)


def _follow(layers: Sequence[FusableLayer], out: StackOutput) -> None:
    for layer, means, variances in zip(layers, out.mean.unbind(), out.variance.unbind(), strict=True):
        norms: tuple[BatchNorm, ...] = (layer.pair_norm, layer.node_norm, layer.ffn_norm)
        for norm, mean, variance in zip(norms, means.unbind(), variances.unbind(), strict=True):
            if norm is not layer.pair_norm or layer.update_pairs:
                norm.follow(mean, variance)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    """What the backward pass needs."""
    x, pair, log_degree, row_ptr, key, weights, statistics, seeds, *options, keep = inputs
    out = StackOutput(*output)
    ctx.num_weights, ctx.options, ctx.keep = len(weights), options, keep
    ctx.set_materialize_grads(False)
    ctx.mark_non_differentiable(*out[2:])
    ctx.save_for_backward(x, pair, log_degree, row_ptr, key, seeds, out.mean, *out[4:], *weights, *statistics)


def _backward(ctx: Any, grad_x: Tensor | None, grad_pair: Tensor | None, *_: None) -> tuple[Any, ...]:
    """Gradients of the inputs of `layer_stack`, by the fused unit; a graph of them, if asked for, by the plain form."""
    x, pair, log_degree, row_ptr, key, seeds, *rest = ctx.saved_tensors
    mean_and_kept, weights, statistics = rest[:6], rest[6 : 6 + ctx.num_weights], rest[6 + ctx.num_weights :]
    if grad_x is None:
        grad_x = torch.zeros_like(x)
    if not ctx.keep:
        raise GritError("grit::layer_stack was called with keep=False, so that it cannot be differentiated.")
    if torch.is_grad_enabled():
        if not is_one_process():
            raise GritError("layers shared by several processes can be differentiated twice only with GRIT_KERNELS=plain.")
        x, pair, *weights = (tensor.view_as(tensor) for tensor in (x, pair, *weights))  # each stands for one place
        out = plain_stack(x, pair, log_degree, row_ptr, key, weights, statistics, seeds, *ctx.options)
        grads = _graph_of_gradients(out, (x, pair, *weights), (grad_x, grad_pair))
    else:
        grads = layer_stack_backward(
            grad_x, grad_pair, x, pair, log_degree, row_ptr, key, weights, statistics, seeds,
            *mean_and_kept, *ctx.options,
        )  # fmt: skip
    of_weights = [grad if weight.numel() else None for grad, weight in zip(grads[2:], weights, strict=True)]
    return grads[0], grads[1], None, None, None, of_weights, [None] * len(statistics), *[None] * 8


def _graph_of_gradients(
    outputs: tuple[Tensor, Tensor], inputs: Sequence[Tensor], given: tuple[Tensor, Tensor | None]
) -> list[Tensor | None]:
    wanted = [tensor for tensor in inputs if tensor.requires_grad]
    used = [(out, grad) for out, grad in zip(outputs, given, strict=True) if grad is not None]
    found = iter(
        torch.autograd.grad(
            [out for out, _ in used], wanted, [grad for _, grad in used], create_graph=True, allow_unused=True
        )
    )
    return [next(found) if tensor.requires_grad else None for tensor in inputs]


torch.library.register_autograd(layer_stack, _backward, setup_context=_setup)


def plain_stack(
    x: Tensor,
    pair: Tensor,
    log_degree: Tensor,
    row_ptr: Tensor,
    key: Tensor,
    weights: Sequence[Tensor],
    statistics: Sequence[Tensor],
    seeds: Tensor,
    heads: int,
    clamp: float | None,
    attention_dropout: float,
    dropout_probability: float,
    eps: float,
    gelu: bool,
) -> tuple[Tensor, Tensor]:
    """What `layer_stack` computes, in plain PyTorch, as a function of its tensors: x (N, D), pair (P, D).

    `grit.nn.layer.GritLayer` is the definition; this is the same with the weights as arguments, for what the unit cannot do.
    """
    num_nodes = row_ptr.numel() - 1
    query = torch.repeat_interleave(torch.arange(num_nodes), row_ptr.diff(), output_size=key.numel())
    pairs = Pairs(query=query, key=key, row_ptr=row_ptr, edge_pair=key.new_empty(0))
    sigma = F.gelu if gelu else torch.relu

    for number in range(seeds.shape[0]):
        w = dict(zip(WEIGHTS, weights[number * len(WEIGHTS) :], strict=False))
        seed = seeds[number]

        def linear(rows: Tensor, name: str, w: dict[str, Tensor] = w) -> Tensor:
            return F.linear(rows, w[f"{name}_weight"], w.get(f"{name}_bias"))

        def split(rows: Tensor) -> Tensor:
            return rows.view(rows.shape[0], heads, -1)

        def norm(rows: Tensor, which: int, name: str, w: dict[str, Tensor] = w, number: int = number) -> Tensor:
            at = (number * NORMS + which) * 2
            mean, variance = statistics[at : at + 2] if statistics else (None, None)
            scale, shift = w[f"{name}_norm_weight"], w[f"{name}_norm_bias"]
            return F.batch_norm(rows, mean, variance, scale, shift, training=not statistics, eps=eps)

        attended = grit_attention(
            *(split(linear(x, name)) for name in ("query", "key", "value")),
            *(split(linear(pair, name)) for name in ("scale", "shift")),
            w["score"],
            w["pair_value"],
            pairs,
            clamp=clamp,
            activation=torch.relu,
            attention_dropout=attention_dropout,
            seed=seed[0],
        )
        if w["pair_out_weight"].numel():
            assert attended.pair is not None
            pair = norm(pair + linear(dropout(attended.pair, dropout_probability, seed[1]), "pair_out"), 0, "pair")
        node = dropout(attended.node, dropout_probability, seed[2])
        if w["theta"].numel():
            node = node * w["theta"][0] + node * log_degree.unsqueeze(1) * w["theta"][1]
        x = norm(x + linear(node, "node_out"), 1, "node")
        x = norm(x + linear(dropout(sigma(linear(x, "ffn_in")), dropout_probability, seed[3]), "ffn_out"), 2, "ffn")
    return x, pair
