"""Recipes: one YAML per published number, in ``grit/recipe/recipes``; a user's own file works the same.

A file that says ``base: zinc`` names only what it changes.
"""

import difflib
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from grit.errors import GritError, shorten, shown
from grit.recipe.bounded_yaml import MAX_DEPTH, dump_yaml, parse_yaml, read_yaml
from grit.recipe.config import Recipe

_MAX_LINES = 10  # of mistakes that one message lists


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
        details = error.errors()
        lines = [_explain(detail) for detail in details[:_MAX_LINES]]
        lines += [f"and {len(details) - _MAX_LINES:,} more."] if len(details) > _MAX_LINES else []
        raise GritError(f"{where}:\n  " + "\n  ".join(lines)) from None


def scale_warmup(
    recipe: Recipe, original: Recipe, overrides: Sequence[str], say: Callable[[str], None] | None
) -> Recipe:
    """If the number of epochs was overridden and the warm-up was not, shorten (or lengthen) the warm-up in proportion."""
    named = {override.partition("=")[0].strip() for override in overrides}
    if "train.epochs" not in named or "train.warmup_epochs" in named:
        return recipe
    warmup = round(original.train.warmup_epochs * recipe.train.epochs / original.train.epochs)
    if say is not None and warmup != recipe.train.warmup_epochs:
        say(
            f"warm-up of {warmup} epochs, in proportion to {recipe.train.epochs} instead of {original.train.epochs} "
            "(train.warmup_epochs=N overrides it)"
        )
    return recipe.model_copy(update={"train": recipe.train.model_copy(update={"warmup_epochs": warmup})})


def _folder() -> Traversable:
    return resources.files("grit") / "recipe" / "recipes"


def _read(name: str | Path) -> dict[str, Any]:
    """The YAML tree of a recipe with its base merged in."""
    tree = _load_yaml(name)
    if "base" not in tree:
        return tree
    base = tree.pop("base")
    if base not in recipes():
        raise GritError(f"recipe {str(name)!r}: base: {shown(base)} is no recipe{_nearest(str(base), recipes())}.")
    return _merge(_read(base), tree)


def _load_yaml(name: str | Path) -> dict[str, Any]:
    if isinstance(name, Path) or name.endswith((".yaml", ".yml")):
        tree = read_yaml(Path(name), "recipe")
    elif name in recipes():
        tree = parse_yaml((_folder() / f"{name}.yaml").read_text(encoding="utf-8"), f"recipe {name!r}")
    else:
        raise GritError(
            f"unknown recipe {shown(name)}{_nearest(name, recipes())}. `grit recipes` lists them; "
            "a file of your own is named with its ending .yaml."
        )
    if not isinstance(tree, dict):
        raise GritError(f"recipe {str(name)!r} must be a mapping of keys to values, got {shown(tree)}.")
    return tree


def _parse_override(override: str) -> dict[str, Any]:
    path, equals, text = override.partition("=")
    keys = [key.strip() for key in path.split(".")]
    if not equals or not all(keys) or len(keys) > MAX_DEPTH:
        raise GritError(f"override {shown(override)} is not of the form key=value, for example model.num_layers=4.")
    if not text.strip():
        raise GritError(f"override {shown(override)} has no value; write {shorten(path)}=null for none.")
    value = parse_yaml(text, f"override {shown(override)}")
    for key in reversed(keys):
        value = {key: value}
    tree: dict[str, Any] = value
    return tree


def _merge(base: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in change.items():
        old = merged.get(key)
        merged[key] = _merge(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged


_EXPECTED = {
    "bool_type": "expected true or false",
    "finite_number": "expected a number that is neither infinite nor nan",
    "float_type": "expected a number",
    "int_from_float": "expected a whole number (an integer)",
    "int_type": "expected a whole number (an integer)",
    "model_type": "expected keys and values",
    "string_type": "expected text",
    "string_unicode": "expected text",
}


def _explain(detail: Any) -> str:
    path = [str(part) for part in detail["loc"]]
    dotted = shorten(".".join(path) or "recipe")
    if detail["type"] == "extra_forbidden":
        names = _field_names(path[:-1])
        return f"{dotted}: unknown key{_nearest_key(path[-1], names)}. Known here: {', '.join(names)}."
    if detail["type"] == "missing":
        return f"{dotted}: missing, and it has no default."
    message = _EXPECTED.get(detail["type"], detail["msg"].removeprefix("Value error, "))
    of_whole = detail["type"] == "value_error" and isinstance(detail["input"], dict | BaseModel)
    given = "" if of_whole else f"got {shown(detail['input'])}: "
    return f"{dotted}: {given}{message.rstrip('.')}."


def _field_names(path: Sequence[str]) -> list[str]:
    """Keys of the part of the tree at ``path``."""
    node: Any = Recipe
    for part in path:
        node = _section(node.model_fields[part].annotation)
    return list(node.model_fields)


def _section(annotation: Any) -> type[BaseModel] | None:
    """The part of the tree that a field holds; None if it holds a value."""
    options = [annotation, *getattr(annotation, "__args__", ())]
    return next((option for option in options if isinstance(option, type) and issubclass(option, BaseModel)), None)


def _nearest_key(word: str, names: list[str]) -> str:
    """A hint at the key that was meant: here, or in another section."""
    sections = [name for name, field in Recipe.model_fields.items() if _section(field.annotation) is not None]
    elsewhere = {name: f"{section}.{name}" for section in reversed(sections) for name in _field_names([section])}
    if word in elsewhere:
        return f" (did you mean {elsewhere[word]!r}?)"
    if hint := _nearest(word, names):
        return hint
    match = difflib.get_close_matches(word[:100], elsewhere, n=1, cutoff=0.7)
    return f" (did you mean {elsewhere[match[0]]!r}?)" if match else ""


def _nearest(word: str, options: list[str]) -> str:
    match = difflib.get_close_matches(word[:100], options, n=1, cutoff=0.5)
    return f" (did you mean {match[0]!r}?)" if match else ""


def recipe_yaml(recipe: Recipe) -> str:
    """The complete recipe as YAML; `load_recipe` reads it back to an equal one."""
    return dump_yaml(recipe.model_dump(mode="json"))
