"""Can these layers run in the fused unit (`grit.kernels.stack`) on these tensors, and if not, why not?

The unit reads only the weights of the layers. So it may run only where every module does exactly what its class says and no
hook observes it. Whatever is unusual runs plain, through ordinary module calls.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn.modules import module as every_module

from grit.kernels import backend
from grit.kernels.stack import weight_shapes
from grit.nn.fused_stack import FusableLayer, layer_weights, norms, stack_options

_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_GLOBAL_HOOKS = tuple(getattr(every_module, f"_global{name}") for name in _HOOKS)
# The only classes of which layers that are fused may consist: for each the names that it defines, which an instance must not
# replace, and what they stand for, which nobody must have replaced on the class. `grit.nn.layer` fills it in.
_KNOWN: dict[type[nn.Module], frozenset[str]] = {}
_DEFINED: dict[tuple[type[nn.Module], str], object] = {}


def fusable(*kinds: type[nn.Module]) -> None:
    """Enter exact classes whose forward pass the fused unit computes."""
    for kind in kinds:
        _KNOWN[kind] = frozenset(dir(kind))
        _DEFINED.update({(kind, name): getattr(kind, name) for name in ("forward", "rho") if name in _KNOWN[kind]})


def why_not_fused(layers: Sequence[FusableLayer], x: Tensor, pair: Tensor, log_degree: Tensor) -> str | None:
    """None if the layers run fused on x (N, D) and pair (P, D); otherwise the reason why they run plain.

    A layer that asks for itself alone does so within its own call: hooks on it fire anyway, those on its parts would not.
    """
    for reasons in (
        _of_the_device(x),
        _of_the_tensors(x, pair, log_degree),
        _of_the_surroundings(x.device),
        _of_the_modules(layers),
        _of_the_weights(layers, x),
        _of_the_settings(layers),
    ):
        for reason in reasons:
            return reason
    return None


def _of_the_device(x: Tensor) -> Iterator[str]:
    fused = backend.DEVICES.get(x.device.type)
    if fused is None:
        yield f"x is on {x.device}; the fused unit is for {', '.join(backend.DEVICES)}"
        return
    if not fused.is_ready():
        yield f"the plain kernels are active: {backend.status().reason}"
    if x.dtype not in fused.dtypes:
        names = " and ".join(str(dtype).removeprefix("torch.") for dtype in fused.dtypes)
        yield f"x is {x.dtype}; the fused unit is for {names}"


def _of_the_tensors(x: Tensor, pair: Tensor, log_degree: Tensor) -> Iterator[str]:
    for name, tensor in (("x", x), ("pair", pair), ("log_degree", log_degree)):
        if not _is_ordinary(tensor):
            yield f"{name} is a {type(tensor).__name__}"
        if tensor.device != x.device:
            yield f"{name} is on {tensor.device} and x on {x.device}"
    if x.dim() != 2 or pair.dim() != 2 or x.shape[1] != pair.shape[1]:
        yield f"x and pair are not rows of one width: {tuple(x.shape)} and {tuple(pair.shape)}"
    if pair.dtype != x.dtype:
        yield f"x is {x.dtype} and pair {pair.dtype}"
    if log_degree.requires_grad:
        yield "log_degree requires a gradient"


def _of_the_surroundings(device: torch.device) -> Iterator[str]:
    if torch.amp.is_autocast_available(device.type) and torch.is_autocast_enabled(device.type):
        yield "autocast is on"
    if not torch.compiler.is_compiling():
        if torch._C._get_tracing_state() is not None:  # torch.jit.is_tracing, typed
            yield "torch.jit is tracing"
        if torch._C._are_functorch_transforms_active():  # no public function tells
            yield "a torch.func transform is in progress"
        if forward_ad._current_level >= 0:
            yield "forward-mode differentiation is in progress"
        if any(_GLOBAL_HOOKS):
            yield "hooks are registered on all modules"


def _of_the_modules(layers: Sequence[FusableLayer]) -> Iterator[str]:
    for (kind, name), defined in _DEFINED.items():
        if getattr(kind, name) is not defined:
            yield f"{kind.__name__}.{name} was replaced"
    for number, layer in enumerate(layers):
        for path, part in layer.named_modules():
            where = f"layer {number}, {path}," if path else f"layer {number}"
            if type(part) not in _KNOWN:
                yield f"{where} is a {type(part).__name__}"
            elif not _KNOWN[type(part)].isdisjoint(vars(part)):
                yield f"{where} has a {min(_KNOWN[type(part)] & vars(part).keys())} of its own"
            elif (path or len(layers) > 1) and (
                part._forward_hooks or part._forward_pre_hooks or part._backward_hooks or part._backward_pre_hooks
            ):
                yield f"{where} has a hook"


def _of_the_weights(layers: Sequence[FusableLayer], x: Tensor) -> Iterator[str]:
    width, known = x.shape[1], {}
    for number, layer in enumerate(layers):
        heads, *_ = options = stack_options(layer)
        if heads * layer.attention.head_dim != width:
            yield f"layer {number} is not for rows of {width}"
        for name in ("key", "value"):
            if getattr(layer.attention, name).bias is not None:
                yield f"layer {number} has a {name}_bias"
        if options[:4] not in known:  # heads, FFN, degree scaler, pairs
            known[options[:4]] = weight_shapes(width, *options[:4])
        shapes = known[options[:4]]
        for weight, (name, shape) in zip(layer_weights(layer), shapes.items(), strict=True):
            if weight is None:
                yield f"layer {number} has no {name}"
            elif weight.shape != shape:
                yield f"layer {number} has a {name} of shape {tuple(weight.shape)} instead of {shape}"
            elif weight.dtype != x.dtype or weight.device != x.device or not _is_ordinary(weight):
                yield f"layer {number} has a {name} that is a {type(weight).__name__} of {weight.dtype} on {weight.device}"
        for norm in norms(layer):
            for moment in () if norm.uses_batch_statistics else (norm.running_mean, norm.running_var):
                if moment is None or moment.shape != (width,) or moment.dtype != x.dtype or moment.device != x.device:
                    yield f"layer {number} has running statistics of another shape or type"


def _of_the_settings(layers: Sequence[FusableLayer]) -> Iterator[str]:
    first = stack_options(layers[0])
    of_batch = layers[0].node_norm.uses_batch_statistics
    for number, layer in enumerate(layers):
        if layer.attention.activation is not torch.relu:
            yield f"layer {number}, attention, has another activation than ReLU"
        if layer.activation not in (torch.relu, torch.nn.functional.gelu):
            yield f"layer {number} has another activation than ReLU and GELU"
        if number + 1 < len(layers) and not layer.update_pairs:
            yield f"layer {number} does not rewrite pairs, and is not the last"
        if stack_options(layer)._replace(update_pairs=first.update_pairs) != first:
            yield f"layer {number} has other settings than layer 0"
        for norm in norms(layer):
            if norm.eps != first.eps or norm.uses_batch_statistics != of_batch:
                yield f"layer {number} has a norm of another eps or mode"


def _is_ordinary(tensor: Tensor) -> bool:
    """Whether it is no subclass with ideas of its own; what a compiler shows us is its own affair."""
    return type(tensor) in (Tensor, nn.Parameter) or torch.compiler.is_compiling()
