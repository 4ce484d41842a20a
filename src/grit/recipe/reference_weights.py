"""Weights of the released research code, read into `Grit`.

The released model splits ``E.weight`` (2D, D) into scale and shift *within each head*, and keeps the score and pair-value
matrices as (C, H, 1) and (C, H, C); `_names` says how each of our tensors is found in its state dict.
"""

import pickle
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from grit.errors import GritError
from grit.graphs.schema import Features
from grit.models.grit import Grit
from grit.nn.attention import GritAttention
from grit.nn.heads import HalvingHead, MLPHead
from grit.recipe.builder import build_model
from grit.recipe.config import Recipe
from grit.recipe.load import load_recipe

_PADDING = "rrwp_rel_encoder.padding"


class _Source(NamedTuple):
    """Where one tensor of ours comes from: their name, their shape, and how to turn theirs into ours."""

    name: str
    shape: tuple[int, ...]
    convert: Callable[[Tensor], Tensor]


def load_reference_checkpoint(source: str | Path | Mapping[str, Tensor], recipe: Recipe | str) -> Grit:
    """GRIT with weights of the released research code, in evaluation mode.

    Args:
        source: A checkpoint file (read with ``weights_only=True``), or a state dict, with or without the leading ``model.``.
        recipe: The recipe, or its name, that the weights were trained with.
    """
    if isinstance(recipe, str):
        recipe = load_recipe(recipe)
    model = build_model(recipe)
    if not isinstance(model, Grit) or not all(type(module) is GritAttention for module in _attentions(model)):
        raise GritError(
            "the released weights are of GRIT with its own attention, the recipe has the model "
            f"{recipe.model.name!r} with {recipe.model.options().get('attention')!r}."
        )
    state = _without_prefix(source if isinstance(source, Mapping) else _read(Path(source)))
    odd = [name for name, value in state.items() if not isinstance(value, Tensor)]
    if odd:
        raise GritError(f"the state dict holds something other than tensors: {', '.join(odd[:5])}.")
    model.load_state_dict(_converted(state, model))
    return model.eval()


def _attentions(model: Grit) -> Iterator[nn.Module]:
    for layer in model.layers:
        yield layer.get_submodule("attention")


def _read(path: Path) -> Mapping[str, Any]:
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, pickle.UnpicklingError, LookupError, ValueError, AssertionError) as error:
        raise GritError(f"cannot read the checkpoint {str(path)!r}: {error}") from None
    for key in ("model_state", "state_dict"):
        if isinstance(content, Mapping) and isinstance(content.get(key), Mapping):
            content = content[key]
    if not isinstance(content, Mapping) or not all(isinstance(value, Tensor) for value in content.values()):
        raise GritError(
            f"{str(path)!r} holds no state dict: expected names and tensors, or those under 'model_state' or 'state_dict'."
        )
    return content


def _without_prefix(state: Mapping[str, Any]) -> dict[str, Tensor]:
    prefix = "model." if state and all(name.startswith("model.") for name in state) else ""
    return {name.removeprefix(prefix): value for name, value in state.items()}


def _converted(state: dict[str, Tensor], model: Grit) -> dict[str, Tensor]:
    sources = dict(_names(model))
    wanted = {source.name for source in sources.values()}
    missing = sorted(wanted - state.keys())
    unexpected = sorted(state.keys() - wanted - {_PADDING})
    shapes = {source.name: source.shape for source in sources.values()}
    wrong = [
        f"{name}: {tuple(state[name].shape)}, expected {shape}"
        for name, shape in sorted(shapes.items())
        if name in state and tuple(state[name].shape) != shape
    ]
    if _PADDING in state and bool(state[_PADDING].any()):
        wrong.append(f"{_PADDING}: expected zeros, as the released code keeps it")
    if missing or unexpected or wrong:
        parts = [("missing", missing), ("unexpected", unexpected), ("wrong shape or value", wrong)]
        lines = [f"{what} ({len(names)}): {', '.join(names)}" for what, names in parts if names]
        raise GritError(
            "the state dict does not fit the recipe's model:\n  " + "\n  ".join(lines) + "\n  Is it the right recipe?"
        )
    return {ours: source.convert(state[source.name]).clone() for ours, source in sources.items()}


def _names(model: Grit) -> Iterator[tuple[str, _Source]]:
    """Each name in our state dict with its `_Source`."""
    ours = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}

    def same(name: str, theirs: str) -> tuple[str, _Source]:
        return name, _Source(theirs, ours[name], _identity)

    yield from (same(*names) for names in _encoder_names("node", "atom", model.schema.node))
    yield from (same(*names) for names in _encoder_names("edge", "bond", model.schema.edge))
    for name, theirs in (("node_encoding", "rrwp_abs_encoder"), ("pair_encoding", "rrwp_rel_encoder")):
        if f"stem.{name}.weight" in ours:
            yield same(f"stem.{name}.weight", f"{theirs}.fc.weight")
    norm = "batch" if "layers.0.node_norm.running_mean" in ours else "layer"
    for i in range(len(model.layers)):
        layer = f"layers.{i}"
        heads, channels = ours[f"{layer}.attention.score"]
        dim = heads * channels
        for mine, theirs in (("query", "Q"), ("key", "K"), ("value", "V")):
            yield same(f"{layer}.attention.{mine}.weight", f"{layer}.attention.{theirs}.weight")
        yield same(f"{layer}.attention.query.bias", f"{layer}.attention.Q.bias")
        for part, mine in enumerate(("pair_scale", "pair_shift")):
            split = _HeadwisePart(heads, part)
            yield f"{layer}.attention.{mine}.weight", _Source(f"{layer}.attention.E.weight", (2 * dim, dim), split)
            yield f"{layer}.attention.{mine}.bias", _Source(f"{layer}.attention.E.bias", (2 * dim,), split)
        yield f"{layer}.attention.score", _Source(f"{layer}.attention.Aw", (channels, heads, 1), _score)
        yield (
            f"{layer}.attention.pair_value",
            _Source(f"{layer}.attention.VeRow", (channels, heads, channels), _pair_value),
        )
        if f"{layer}.degree_scaler.theta" in ours:
            yield f"{layer}.degree_scaler.theta", _Source(f"{layer}.deg_coef", (1, dim, 2), _theta)
        for mine, theirs in (
            ("node_out", "O_h"),
            ("pair_out", "O_e"),
            ("node_norm", f"{norm}_norm1_h"),
            ("pair_norm", f"{norm}_norm1_e"),
            ("ffn_in", "FFN_h_layer1"),
            ("ffn_out", "FFN_h_layer2"),
            ("ffn_norm", f"{norm}_norm2_h"),
        ):
            for name in ours:
                if name.startswith(f"{layer}.{mine}."):
                    yield same(name, name.replace(f"{layer}.{mine}.", f"{layer}.{theirs}."))
    for mine, theirs in _head_names(model):
        for what in ("weight", "bias"):
            yield same(f"{mine}.{what}", f"{theirs}.{what}")


def _encoder_names(place: str, ogb: str, features: Features) -> Iterator[tuple[str, str]]:
    mine, theirs = f"stem.{place}", f"encoder.{place}_encoder"
    if features.kind == "columns":
        for column in range(len(features.sizes)):
            yield f"{mine}.embeddings.{column}.weight", f"{theirs}.{ogb}_embedding_list.{column}.weight"
    elif features.kind == "numeric":
        yield f"{mine}.linear.weight", f"{theirs}.encoder.weight"
        yield f"{mine}.linear.bias", f"{theirs}.encoder.bias"
    else:
        yield f"{mine}.embedding.weight", f"{theirs}.encoder.weight"


def _head_names(model: Grit) -> Iterator[tuple[str, str]]:
    if isinstance(model.head, HalvingHead):
        for i in range(len(model.head.linears)):
            yield f"head.linears.{i}", f"post_mp.FC_layers.{i}"
        return
    if not isinstance(model.head, MLPHead):
        raise GritError(
            f"the released code has no head such as {type(model.head).__name__}: use model.head=halving or mlp."
        )
    hidden = len(model.head.hidden)
    for i in range(hidden):
        yield f"head.hidden.{i}", f"post_mp.layer_post_mp.model.0.Layer_{i}.layer.model"
    yield "head.out", f"post_mp.layer_post_mp.model.{1 if hidden else 0}.model"


class _HeadwisePart:
    """Rows of a (2D, ...) tensor laid out as (H, 2, C, ...): the first or second part of every head, (D, ...)."""

    def __init__(self, num_heads: int, part: int) -> None:
        self.num_heads, self.part = num_heads, part

    def __call__(self, both: Tensor) -> Tensor:
        channels = both.shape[0] // (2 * self.num_heads)
        return both.view(self.num_heads, 2, channels, *both.shape[1:])[:, self.part].flatten(0, 1)


def _identity(theirs: Tensor) -> Tensor:
    return theirs


def _score(theirs: Tensor) -> Tensor:
    return theirs[:, :, 0].t()  # (C, H, 1) -> (H, C)


def _pair_value(theirs: Tensor) -> Tensor:
    return theirs.transpose(0, 1)  # (in, H, out) -> (H, in, out)


def _theta(theirs: Tensor) -> Tensor:
    return theirs[0].t()  # (1, D, 2) -> (2, D)
