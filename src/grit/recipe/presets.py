"""Recipes for your own data: presets of three sizes."""

from collections.abc import Mapping, Sequence

from grit.errors import GritError
from grit.graphs.schema import GraphSchema
from grit.recipe.config import Recipe
from grit.recipe.load import load_recipe

PRESETS = ("fast", "default", "paper")


def preset_name(preset: str) -> str:
    """What `load_recipe` reads for a preset: the recipe ``own-PRESET``, or the file that it names."""
    if preset.endswith((".yaml", ".yml")):
        return preset
    if preset not in PRESETS:
        raise GritError(
            f"unknown preset {preset!r}; there are {', '.join(PRESETS)}. A recipe of your own is named with its ending .yaml."
        )
    return f"own-{preset}"


def preset_recipe(preset: str, schema: GraphSchema, *overrides: str, dataset: str | None = None) -> Recipe:
    """The recipe of a preset, fitted to the level of the data as far as the model has options for that.

    Args:
        preset: ``fast``, ``default`` or ``paper``, or the file of a recipe.
        schema: Of the data.
        overrides: As in `load_recipe`.
        dataset: Folder of the store, for the record; the data itself is given to `train`.
    """
    name = preset_name(preset)
    level = {} if schema.level == "graph" else {"pooling": "none", "head": "mlp"}
    naming = [each for each in overrides if each.partition("=")[0].strip() in ("model.name", "baseline", "plugins")]
    known = load_recipe(name, *naming).model.options()
    fitted = [f"model.{key}={value}" for key, value in level.items() if key in known]
    recipe = load_recipe(name, *fitted, *overrides)
    return recipe if dataset is None else recipe.model_copy(update={"dataset": dataset})


def with_named_options(overrides: Sequence[str], options: Mapping[str, int | None]) -> list[str]:
    """Overrides, and those that a command's own options stand for, such as ``--epochs 50`` for ``train.epochs=50``.

    Args:
        overrides: As in `load_recipe`.
        options: Value of each option by its key in the recipe; None where it was not given.

    Raises:
        GritError: If both name a key and their values differ.
    """
    named = {key: str(value) for key, value in options.items() if value is not None}
    for override in overrides:
        key, _, value = (part.strip() for part in override.partition("="))
        if key in named and value != named[key]:
            option = "--" + key.rpartition(".")[2].replace("_", "-")
            raise GritError(f"{option} {named[key]} and {override} contradict each other; give one of them.")
    return [*overrides, *(f"{key}={value}" for key, value in named.items())]
