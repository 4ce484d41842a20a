"""All layers of a model in one operation, in a training step (`grit.kernels.layers`): the same numbers as one by one, with
nothing of Python between them.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from grit.graphs.pairs import Pairs
from grit.kernels.choice import keeps_projection
from grit.kernels.layers import WEIGHTS, LayersSetting, run_layers
from grit.nn.attention.contract import PairRows, check_rows
from grit.nn.attention.grit import GritAttention
from grit.nn.layer import GritLayer
from grit.nn.norm import BatchNorm, is_one_process

THETA = WEIGHTS.index("theta")  # the only weight that may be missing


def can_run_together(layers: Sequence[nn.Module], x: Tensor, pair: Tensor, log_degree: Tensor) -> bool:
    """Whether `run_together` can take the place of the layers' own `step`, and is no slower.

    Where the first layers are frozen it would be: the backward pass goes through all of them.
    """
    if not layers or not torch.is_grad_enabled() or torch.compiler.is_compiling():
        return False
    first = layers[0]
    return (
        is_one_process()
        and not keeps_projection()
        and not log_degree.requires_grad
        and all(_is_usual(layer, is_last=number == len(layers) - 1) for number, layer in enumerate(layers))
        and first.attention.can_fuse(x, PairRows(pair))  # type: ignore[union-attr, operator]
        and (x.requires_grad or pair.requires_grad or any(p.requires_grad for p in first.parameters()))
        and len({_signature(layer) for layer in layers}) == 1  # type: ignore[arg-type]
    )


def _is_usual(layer: nn.Module, is_last: bool) -> bool:
    return (
        type(layer) is GritLayer
        and type(layer.attention) is GritAttention
        and layer.training
        and layer.attention.training
        and layer.activation is torch.relu
        and layer.attention.activation is torch.relu
        and layer.update_pairs is not is_last
        and all(_is_usual_norm(norm) for norm in _norms(layer))
        and all(weight is not None for weight in _required_weights(layer))
    )


def _is_usual_norm(norm: nn.Module) -> bool:
    if type(norm) is not BatchNorm or not norm.training or norm.momentum is None:
        return False
    return all(each is not None and each.is_contiguous() for each in (norm.running_mean, norm.running_var))


def run_together(layers: Sequence[GritLayer], x: Tensor, pair: Tensor, pairs: Pairs, log_degree: Tensor) -> Tensor:
    """What x (N, D) is after all layers, of x (N, D) and pair (P, D)."""
    layers[0].check(x, log_degree)
    check_rows(x, pair, pairs)
    weights = [weight for layer in layers for weight in _weights(layer)]
    norms = [norm for layer in layers for norm in _norms(layer)]
    running = [each for norm in norms for each in (norm.running_mean, norm.running_var) if each is not None]
    out = run_layers(x, pair, log_degree.to(x.dtype), pairs.row_ptr, pairs.key, weights, running, _setting(layers[0]))
    used = norms[:-3] + norms[-2:]  # the last layer's pairs are not normalised
    torch._foreach_add_([norm.num_batches_tracked for norm in used if norm.num_batches_tracked is not None], 1)
    return out


def _signature(layer: GritLayer) -> tuple[object, ...]:
    """What all layers must have in common."""
    norms = {(norm.eps, norm.momentum) for norm in _norms(layer)}
    shapes = tuple(None if weight is None else (weight.shape, weight.dtype) for weight in _weights(layer))
    return len(norms) == 1 or id(layer), _setting(layer), shapes


def _required_weights(layer: GritLayer) -> tuple[Tensor | None, ...]:
    weights = _weights(layer)
    return weights[:THETA] + weights[THETA + 1 :]


def _weights(layer: GritLayer) -> tuple[Tensor | None, ...]:
    """In the order of `grit.kernels.layers.WEIGHTS`."""
    attention = layer.attention
    assert isinstance(attention, GritAttention)
    return (
        *(attention.query.weight, attention.query.bias, attention.key.weight, attention.value.weight),
        *(
            attention.pair_scale.weight,
            attention.pair_scale.bias,
            attention.pair_shift.weight,
            attention.pair_shift.bias,
        ),
        *(attention.score, attention.pair_value, None if layer.degree_scaler is None else layer.degree_scaler.theta),
        *(layer.node_out.weight, layer.node_out.bias, layer.pair_out.weight, layer.pair_out.bias),
        *(layer.ffn_in.weight, layer.ffn_in.bias, layer.ffn_out.weight, layer.ffn_out.bias),
        *(weight for norm in _norms(layer) for weight in (norm.weight, norm.bias)),
    )


def _norms(layer: GritLayer) -> tuple[BatchNorm, ...]:
    return layer.pair_norm, layer.node_norm, layer.ffn_norm  # type: ignore[return-value]


def _setting(layer: GritLayer) -> LayersSetting:
    attention, norm = layer.attention, layer.node_norm
    assert isinstance(attention, GritAttention)
    return LayersSetting(
        num_heads=attention.num_heads,
        clamp=attention.clamp,
        attention_dropout=attention.attention_dropout,
        dropout=layer.dropout,
        eps=norm.eps,  # type: ignore[arg-type]
        momentum=norm.momentum,  # type: ignore[arg-type]
    )
