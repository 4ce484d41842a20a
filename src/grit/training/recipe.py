"""Recipes: one YAML per published number, in ``grit/recipes``; a user's own file works the same.

A file that says ``base: zinc`` names only what it changes.
"""

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from grit.errors import GritError
from grit.training.config import Recipe


def recipes() -> list[str]:
    """Names of the recipes that come with the package."""
    return sorted(file.name.removesuffix(".yaml") for file in _folder().iterdir() if file.name.endswith(".yaml"))


def load_recipe(name: str | Path, *overrides: str) -> Recipe:
    """Read a recipe and apply overrides.

    Args:
        name: One of `recipes`, or the path of a YAML file.
        overrides: ``"model.num_layers=4"`` and the like; values are YAML.
    """
    tree = _read(name)
    for override in overrides:
        tree = _merge(tree, _parse_override(override))
    return parse_recipe(tree, where=f"recipe {str(name)!r}")


def parse_recipe(tree: Mapping[str, Any], where: str) -> Recipe:
    """A checked `Recipe` from plain mappings; errors name the path, what was found there and what was expected."""
    try:
        return Recipe.model_validate(tree)
    except ValidationError as error:
        lines = [_explain(detail) for detail in error.errors()]
        raise GritError(f"{where}:\n  " + "\n  ".join(lines)) from None


def scale_warmup(
    recipe: Recipe, original: Recipe, overrides: Sequence[str], say: Callable[[str], None] | None
) -> Recipe:
    """If the number of epochs was overridden and the warm-up was not, shorten (or lengthen) the warm-up in proportion."""
    named = {override.partition("=")[0] for override in overrides}
    if "train.epochs" not in named or "train.warmup_epochs" in named:
        return recipe
    warmup = round(original.train.warmup_epochs * recipe.train.epochs / original.train.epochs)
    if say is not None and warmup != recipe.train.warmup_epochs:
        say(
            f"warm-up of {warmup} epochs, in proportion to {recipe.train.epochs} instead of {original.train.epochs} "
            "(train.warmup_epochs=N overrides it)"
        )
    return recipe.model_copy(update={"train": recipe.train.model_copy(update={"warmup_epochs": warmup})})


class _Loader(yaml.SafeLoader):
    """SafeLoader that also reads 1e-3 as a number, as YAML 1.2 does."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


def _folder() -> Traversable:
    return resources.files("grit") / "recipes"


def _read(name: str | Path) -> dict[str, Any]:
    """The YAML tree of a recipe with its base merged in."""
    tree = _load_yaml(name)
    if "base" not in tree:
        return tree
    base = tree.pop("base")
    if base not in recipes():
        raise GritError(f"recipe {str(name)!r}: base: {base!r} is no recipe{_nearest(str(base), recipes())}.")
    return _merge(_read(base), tree)


def _load_yaml(name: str | Path) -> dict[str, Any]:
    is_path = isinstance(name, Path) or name.endswith((".yaml", ".yml"))
    if is_path:
        try:
            text = Path(name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise GritError(f"cannot read the recipe file {str(name)!r}: {error}") from None
    elif name in recipes():
        text = (_folder() / f"{name}.yaml").read_text(encoding="utf-8")
    else:
        raise GritError(
            f"unknown recipe {name!r}{_nearest(str(name), recipes())}. `grit recipes` lists them; "
            "a file of your own is named with its ending .yaml."
        )
    try:
        tree = yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise GritError(f"recipe {str(name)!r} is not valid YAML: {error}") from None
    if not isinstance(tree, dict):
        raise GritError(f"recipe {str(name)!r} must be a mapping of keys to values, got {type(tree).__name__}.")
    return tree


def _parse_override(override: str) -> dict[str, Any]:
    path, equals, text = override.partition("=")
    if not equals or not path:
        raise GritError(f"override {override!r} is not of the form key=value, for example model.num_layers=4.")
    try:
        value = yaml.load(text, Loader=_Loader)
    except yaml.YAMLError:
        raise GritError(f"override {override!r}: the value {text!r} is not valid YAML.") from None
    for key in reversed(path.split(".")):
        value = {key: value}
    tree: dict[str, Any] = value
    return tree


def _merge(base: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in change.items():
        old = merged.get(key)
        merged[key] = _merge(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged


def _explain(detail: Any) -> str:
    path = [str(part) for part in detail["loc"]]
    dotted = ".".join(path) or "recipe"
    if detail["type"] == "extra_forbidden":
        names = _field_names(path[:-1])
        return f"{dotted}: unknown key{_nearest(path[-1], names)}. Known here: {', '.join(names)}."
    if detail["type"] == "missing":
        return f"{dotted}: missing, and it has no default."
    message = detail["msg"].removeprefix("Value error, ")
    given = "" if isinstance(detail["input"], dict | BaseModel) else f"got {detail['input']!r}: "
    return f"{dotted}: {given}{message.rstrip('.')}."


def _field_names(path: list[str]) -> list[str]:
    """Keys of the part of the tree at ``path``."""
    node: Any = Recipe
    for part in path:
        annotation = node.model_fields[part].annotation
        options = [annotation, *getattr(annotation, "__args__", ())]
        node = next(option for option in options if isinstance(option, type) and issubclass(option, BaseModel))
    return list(node.model_fields)


def _nearest(word: str, options: list[str]) -> str:
    match = difflib.get_close_matches(word, options, n=1, cutoff=0.5)
    return f" (did you mean {match[0]!r}?)" if match else ""


def recipe_yaml(recipe: Recipe) -> str:
    """The complete recipe as YAML; `load_recipe` reads it back to an equal one."""
    return yaml.safe_dump(recipe.model_dump(mode="json"), sort_keys=False)
