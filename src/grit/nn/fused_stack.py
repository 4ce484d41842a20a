"""Layers in the fused unit: their weights go in, its gradients come out, their running statistics follow.

`grit.nn.can_fuse` decides whether layers may come here; `grit.kernels.stack` is the unit.

Shape letters: N nodes of the batch, P node pairs, H heads, C channels per head, D channels, L layers.
"""

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from grit.errors import GritError
from grit.graphs.pairs import Pairs
from grit.kernels.dropout import draw_seed, dropout
from grit.kernels.stack import (
    NUM_NORMS,
    NUM_SEEDS,
    WEIGHTS,
    StackOptions,
    StackOutput,
    layer_stack,
    layer_stack_backward,
)
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


def stack_options(layer: FusableLayer) -> StackOptions:
    """Those of a layer as it is now, in training or evaluation."""
    attention = layer.attention
    return StackOptions(
        heads=attention.num_heads,
        ffn_width=layer.ffn_in.out_features,
        has_theta=layer.degree_scaler is not None,
        update_pairs=layer.update_pairs,
        clamp=attention.clamp,
        attention_dropout=attention.attention_dropout if attention.training else 0.0,
        dropout=layer.dropout if layer.training else 0.0,
        eps=layer.node_norm.eps,
        gelu=layer.activation is F.gelu,
    )


def layer_weights(layer: FusableLayer) -> list[Tensor | None]:
    """The weights of a layer in the order of `WEIGHTS`; without elements where it has none or does not use them."""
    attention, scaler, none = layer.attention, layer.degree_scaler, layer.node_out.weight.new_empty(0)
    linears = (attention.pair_scale, attention.pair_shift)
    out, norm = (layer.pair_out, layer.pair_norm) if layer.update_pairs else (None, None)
    return [
        *(attention.query.weight, attention.query.bias, attention.key.weight, attention.value.weight),
        *(weight for linear in linears for weight in (linear.weight, linear.bias)),
        *(attention.score, attention.pair_value, none if scaler is None else scaler.theta),
        *(layer.node_out.weight, layer.node_out.bias),
        *((none, none) if out is None else (out.weight, out.bias)),
        *(layer.ffn_in.weight, layer.ffn_in.bias, layer.ffn_out.weight, layer.ffn_out.bias),
        *((none, none) if norm is None else (norm.weight, norm.bias)),
        *(layer.node_norm.weight, layer.node_norm.bias, layer.ffn_norm.weight, layer.ffn_norm.bias),
    ]


def norms(layer: FusableLayer) -> tuple[BatchNorm, BatchNorm, BatchNorm]:
    """In the order of `WEIGHTS`."""
    return layer.pair_norm, layer.node_norm, layer.ffn_norm


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
    options = stack_options(layers[-1])
    weights: list[Tensor] = [weight for layer in layers for weight in layer_weights(layer)]  # type: ignore[misc]
    of_batch, statistics = layers[0].node_norm.uses_batch_statistics, []
    if not of_batch:
        moments = ((norm.running_mean, norm.running_var) for layer in layers for norm in norms(layer))
        statistics = [moment for both in moments for moment in both]
    keep = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (x, pair, *weights))
    seeds = _draw_seeds(options, len(layers))
    index = (log_degree.to(x.dtype), pairs.row_ptr, pairs.key)
    out = StackOutput(*layer_stack(x, pair, *index, weights, statistics, seeds, *options, keep))
    if of_batch:
        _follow(layers, out)
    return out.x, out.pair if options.update_pairs else pair


def _draw_seeds(options: StackOptions, num_layers: int) -> Tensor:
    """Seeds (L, 4) of the dropouts, drawn in the order in which layers that run plain would draw them."""
    in_layer = [bool(options.attention_dropout), *[bool(options.dropout)] * (NUM_SEEDS - 1)]
    wanted = [at for at, drops in enumerate(in_layer * num_layers) if drops]
    unused = (num_layers - 1) * NUM_SEEDS + 1  # of pairs that the last layer does not rewrite
    if not options.update_pairs and unused in wanted:
        wanted.remove(unused)
    seeds = torch.zeros(num_layers * NUM_SEEDS, dtype=torch.int64, device="cpu")
    if wanted:
        seeds = seeds.index_copy(0, torch.tensor(wanted), draw_seed(len(wanted)))
    return seeds.view(num_layers, NUM_SEEDS)


def _follow(layers: Sequence[FusableLayer], out: StackOutput) -> None:
    for layer, means, variances in zip(layers, out.mean.unbind(), out.variance.unbind(), strict=True):
        for norm, mean, variance in zip(norms(layer), means.unbind(), variances.unbind(), strict=True):
            if norm is not layer.pair_norm or layer.update_pairs:
                norm.follow(mean, variance)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    """What the backward pass needs."""
    *tensors, weights, statistics, seeds = inputs[:8]
    *ctx.options, ctx.keep = inputs[8:]
    ctx.num_weights = len(weights)
    ctx.set_materialize_grads(False)
    ctx.mark_non_differentiable(*output[2:])
    ctx.save_for_backward(*tensors, seeds, output[2], *output[4:], *weights, *statistics)


def _backward(ctx: Any, grad_x: Tensor | None, grad_pair: Tensor | None, *_: None) -> tuple[Any, ...]:
    """Gradients of the inputs of `layer_stack`, by the fused unit; a graph of them, if asked for, by the plain form."""
    if not ctx.keep:
        raise GritError("grit::layer_stack was called with keep=False, so that it cannot be differentiated.")
    x, pair, log_degree, row_ptr, key, seeds, *rest = ctx.saved_tensors
    kept, weights, statistics = rest[:6], rest[6 : 6 + ctx.num_weights], rest[6 + ctx.num_weights :]
    if grad_x is None:
        grad_x = torch.zeros_like(x)
    if torch.is_grad_enabled():
        if not is_one_process():
            raise GritError(
                "layers shared by several processes can be differentiated twice only with GRIT_KERNELS=plain."
            )
        x, pair, *weights = (tensor.view_as(tensor) for tensor in (x, pair, *weights))  # each stands for one place
        out = plain_stack(x, pair, log_degree, row_ptr, key, weights, statistics, seeds, *ctx.options)
        grads = _graph_of_gradients(out, (x, pair, *weights), (grad_x, grad_pair))
    else:
        grads = layer_stack_backward(
            grad_x, grad_pair, x, pair, log_degree, row_ptr, key, weights, statistics, seeds, *kept, *ctx.options
        )
    after = [None] * (1 + len(ctx.options) + 1)  # seeds, options, keep
    return grads[0], grads[1], None, None, None, list(grads[2:]), [None] * len(statistics), *after


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
    *options: Any,
) -> tuple[Tensor, Tensor]:
    """What `layer_stack` computes, in plain PyTorch, as a function of its tensors: x (N, D), pair (P, D).

    `grit.nn.layer.GritLayer` is the definition; this is the same with the weights as arguments, for what the unit cannot do.
    """
    o = StackOptions(*options)
    num_nodes, num_layers = x.shape[0], seeds.shape[0]
    query = torch.repeat_interleave(torch.arange(num_nodes), row_ptr.diff(), output_size=key.numel())
    pairs = Pairs(query=query, key=key, row_ptr=row_ptr, edge_pair=key.new_empty(0))
    sigma = F.gelu if o.gelu else torch.relu
    for number in range(num_layers):
        rewrites = o.update_pairs or number + 1 < num_layers
        w = dict(zip(WEIGHTS, weights[number * len(WEIGHTS) :], strict=False))

        def linear(rows: Tensor, name: str, w: dict[str, Tensor] = w) -> Tensor:
            return F.linear(rows, w[f"{name}_weight"], w.get(f"{name}_bias"))

        def split(rows: Tensor) -> Tensor:
            return rows.view(rows.shape[0], o.heads, -1)

        def norm(rows: Tensor, which: int, name: str, w: dict[str, Tensor] = w, number: int = number) -> Tensor:
            at = (number * NUM_NORMS + which) * 2
            mean, variance = statistics[at : at + 2] if statistics else (None, None)
            scale, shift = w[f"{name}_norm_weight"], w[f"{name}_norm_bias"]
            return F.batch_norm(rows, mean, variance, scale, shift, training=not statistics, eps=o.eps)

        attended = grit_attention(
            split(linear(x, "query")),
            split(linear(x, "key")),
            split(linear(x, "value")),
            split(linear(pair, "scale")),
            split(linear(pair, "shift")),
            w["score"],
            w["pair_value"],
            pairs,
            clamp=o.clamp,
            activation=torch.relu,
            attention_dropout=o.attention_dropout,
            seed=seeds[number, 0],
        )
        if rewrites:
            assert attended.pair is not None
            pair = norm(pair + linear(dropout(attended.pair, o.dropout, seeds[number, 1]), "pair_out"), 0, "pair")
        node = dropout(attended.node, o.dropout, seeds[number, 2])
        if o.has_theta:
            node = node * w["theta"][0] + node * log_degree.unsqueeze(1) * w["theta"][1]
        x = norm(x + linear(node, "node_out"), 1, "node")
        x = norm(x + linear(dropout(sigma(linear(x, "ffn_in")), o.dropout, seeds[number, 3]), "ffn_out"), 2, "ffn")
    return x, pair
