"""Recipes: one YAML per published number, in ``grit/recipe/recipes``; a user's own file works the same.

A file that says ``base: zinc``, or ``base: mine.yaml``, names only what it changes.
"""

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from grit.errors import GritError, shorten, shown
from grit.models import MODELS
from grit.recipe.bounded_yaml import MAX_DEPTH, dump_yaml, parse_yaml, read_yaml
from grit.recipe.config import Recipe, without_baseline
from grit.recipe.model_config import model_config, parse_model
from grit.recipe.plugins import load_installed_plugins, load_plugin

_MAX_LINES = 10  # of mistakes that one message lists
_MAX_BASES = 20  # files, each the base of the one before


def recipes() -> list[str]:
    """Names of the recipes that come with the package."""
    return sorted(file.name.removesuffix(".yaml") for file in _folder().iterdir() if file.name.endswith(".yaml"))


def recipe_title(name: str) -> str:
    """What one of `recipes` is, in a line: the comment that its file begins with."""
    text = (_folder() / f"{name}.yaml").read_text(encoding="utf-8")
    return text.partition("\n")[0].removeprefix("#").strip()


def load_recipe(name: str | Path, *overrides: str) -> Recipe:
    """Read a recipe and apply overrides.

    Args:
        name: One of `recipes`, or the path of a YAML file.
        overrides: ``"model.num_layers=4"`` and the like; values are YAML.
    """
    tree = _changed(_read(name), overrides)
    for plugin in _plugin_names(tree, name):
        load_plugin(plugin)
    return parse_recipe(tree, where=f"recipe {str(name)!r}")


def load_saved_recipe(path: Path, *overrides: str) -> Recipe:
    """The recipe of a run. Plugins that are files are not loaded: a run folder may come from anybody."""
    tree = _changed(_read(path), overrides)
    names = _plugin_names(tree, path)
    for plugin in names:
        if not plugin.endswith(".py"):
            load_plugin(plugin)
    with suppress(GritError):
        return parse_recipe(tree, where=f"recipe {str(path)!r}")
    load_installed_plugins()  # which the command line has done: an entry of one may be what is missing
    try:
        return parse_recipe(tree, where=f"recipe {str(path)!r}")
    except GritError as error:
        files = [plugin for plugin in names if plugin.endswith(".py")]
        if not files:
            raise
        raise GritError(
            f"{error}\nThe run was trained with {', '.join(files)}. If you trust it, name it again with --plugin FILE, once for "
            "each file, or call grit.load_plugin(FILE) first."
        ) from None


def parse_recipe(tree: Mapping[str, Any], where: str) -> Recipe:
    """A checked `Recipe` from plain mappings; errors name the path, what was found there and what was expected."""
    tree = without_baseline(tree)
    details: list[Any] = []
    model: Any = tree.get("model", {})
    if isinstance(model, Mapping):
        try:
            model = parse_model(model)
        except ValidationError as error:
            details += [{**detail, "loc": ("model", *detail["loc"])} for detail in error.errors()]
            model = parse_model({})
    try:
        recipe = Recipe.model_validate({**tree, "model": model})
        if not details:
            return recipe
    except ValidationError as error:
        details += error.errors()
    explain = _Explainer(tree)
    lines = [explain(detail) for detail in details[:_MAX_LINES]]
    lines += [f"and {len(details) - _MAX_LINES:,} more."] if len(details) > _MAX_LINES else []
    raise GritError(f"{where}:\n  " + "\n  ".join(lines))


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


def _read(name: str | Path, *, below: tuple[str, ...] = ()) -> dict[str, Any]:
    """The YAML tree of a recipe with its base merged in."""
    if len(below) > _MAX_BASES:
        raise GritError(
            f"recipe {below[0]!r}: more than {_MAX_BASES} files name one another as base: {', '.join(below[:4])} ..."
        )
    tree = without_baseline(_load_yaml(name))
    folder = Path(name).parent if _is_file(name) else None
    if folder is not None and isinstance(tree.get("plugins"), list):
        tree["plugins"] = [_beside(folder, plugin) for plugin in tree["plugins"]]
    if "base" not in tree:
        return tree
    base = tree.pop("base")
    if isinstance(base, str) and _is_file(base) and folder is not None:
        base = str(folder / base)
    elif base not in recipes():
        raise GritError(
            f"recipe {str(name)!r}: base: {shown(base)} is not a recipe{_nearest(str(base), recipes())}. "
            "A file of your own is named with its ending .yaml."
        )
    return _merge(_read(base, below=(*below, str(name))), tree)


def _is_file(name: str | Path) -> bool:
    return isinstance(name, Path) or name.endswith((".yaml", ".yml"))


def _beside(folder: Path, plugin: Any) -> Any:
    """A plugin's file begins at the folder of the recipe that names it."""
    return str((folder / plugin).resolve()) if isinstance(plugin, str) and plugin.endswith(".py") else plugin


def _plugin_names(tree: Mapping[str, Any], where: str | Path) -> list[str]:
    names = tree.get("plugins") or []
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        raise GritError(f"recipe {str(where)!r}: plugins must be a list of modules or files, got {shown(names)}.")
    return names


def _load_yaml(name: str | Path) -> dict[str, Any]:
    if _is_file(name):
        tree = read_yaml(Path(name), "recipe")
    elif str(name) in recipes():
        tree = parse_yaml((_folder() / f"{name}.yaml").read_text(encoding="utf-8"), f"recipe {name!r}")
    else:
        raise GritError(
            f"unknown recipe {shown(name)}{_nearest(str(name), recipes())}. `grit recipes` lists them; "
            "a file of your own is named with its ending .yaml."
        )
    if tree is None:
        raise GritError(f"recipe {str(name)!r} is empty. Write at least `base: zinc`, or `dataset: NAME`.")
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


def _changed(tree: Mapping[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for override in overrides:
        changes = _combine(changes, _parse_override(override))
    return _merge(tree, without_baseline(changes))


def _merge(base: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """``base`` with ``change`` on top.

    Another model begins with its own defaults, not with the options of the base's model. Plugins add up: entries that the base
    names come from the base's.
    """
    model, changed = base.get("model"), change.get("model")
    if isinstance(model, Mapping) and isinstance(changed, Mapping):
        before = model.get("name", "grit")
        if changed.get("name", before) != before:
            # What is published of one model is not the figure of another.
            base = {**base, "model": {}, "paper": None}
    plugins, added = base.get("plugins"), change.get("plugins")
    if isinstance(plugins, list) and isinstance(added, list):
        change = {**change, "plugins": [*plugins, *[each for each in added if each not in plugins]]}
    return _combine(base, change)


def _combine(base: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in change.items():
        old = merged.get(key)
        merged[key] = _combine(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
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


class _Explainer:
    """Turns what pydantic found wrong with a recipe into a line for its user.

    Args:
        tree: The recipe, whose model says which keys ``model`` may have.
    """

    def __init__(self, tree: Mapping[str, Any]) -> None:
        model = tree.get("model")
        name = model.get("name", "grit") if isinstance(model, Mapping) else "grit"
        self.sections: dict[str, type[BaseModel]] = {
            name: section
            for name, field in Recipe.model_fields.items()
            if (section := _section(field.annotation)) is not None
        }
        self.sections["model"] = model_config(name if isinstance(name, str) and name in MODELS else "grit")

    def __call__(self, detail: Any) -> str:
        path = [str(part) for part in detail["loc"]]
        dotted = shorten(".".join(path) or "recipe")
        if detail["type"] == "extra_forbidden":
            names = list(self._part(path[:-1]).model_fields)
            return f"{dotted}: unknown key{self._nearest_key(path[-1], names)}. Known here: {', '.join(names)}."
        if detail["type"] == "missing":
            return f"{dotted}: missing, and it has no default."
        message = _EXPECTED.get(detail["type"], detail["msg"].removeprefix("Value error, "))
        of_whole = detail["type"] == "value_error" and isinstance(detail["input"], dict | BaseModel)
        given = "" if of_whole else f"got {shown(detail['input'])}: "
        return f"{dotted}: {given}{message.rstrip('.')}."

    def _part(self, path: Sequence[str]) -> type[BaseModel]:
        """The type of the part of the tree at ``path``."""
        section = self.sections[path[0]] if path else Recipe
        for name in path[1:]:
            section = _section(section.model_fields[name].annotation) or section
        return section

    def _nearest_key(self, word: str, names: list[str]) -> str:
        """A hint at the key that was meant: here, or in another section."""
        elsewhere: dict[str, list[str]] = {}
        for section in self.sections:
            for path in self._paths([section]):
                elsewhere.setdefault(path[-1], []).append(".".join(path))
        if word in elsewhere:
            return _did_you_mean(elsewhere[word])
        if hint := _nearest(word, names):
            return hint
        match = difflib.get_close_matches(word[:100], elsewhere, n=1, cutoff=0.7)
        return _did_you_mean(elsewhere[match[0]]) if match else ""

    def _paths(self, path: list[str]) -> Iterator[list[str]]:
        """Where the keys of the part of the tree at ``path`` are, and those of the parts within."""
        for name, field in self._part(path).model_fields.items():
            yield [*path, name]
            if _section(field.annotation) is not None:
                yield from self._paths([*path, name])


def _section(annotation: Any) -> type[BaseModel] | None:
    """The part of the tree that a field holds; None if it holds a value."""
    options = [annotation, *getattr(annotation, "__args__", ())]
    return next((option for option in options if isinstance(option, type) and issubclass(option, BaseModel)), None)


def _did_you_mean(paths: Sequence[str]) -> str:
    """The hint at keys. What is published is seldom meant where training has a key of that name."""
    meant = [path for path in paths if not path.startswith("paper.")] or paths
    return f" (did you mean {' or '.join(map(repr, meant))}?)"


def _nearest(word: str, options: list[str]) -> str:
    match = difflib.get_close_matches(word[:100], options, n=1, cutoff=0.5)
    return f" (did you mean {match[0]!r}?)" if match else ""


def recipe_yaml(recipe: Recipe) -> str:
    """The complete recipe as YAML; `load_recipe` reads it back to an equal one."""
    return dump_yaml(recipe.model_dump(mode="json"))


def changes_yaml(name: str | Path, *overrides: str) -> str:
    """A recipe file that reads as ``load_recipe(name, *overrides)`` does.

    It names its base and what it changes; if the base is a file, which may go or change, it holds everything.
    """
    if _is_file(name):
        return dump_yaml(_changed(_read(name), overrides))
    return dump_yaml({"base": name, **_changed({}, overrides)})
