"""``grit recipes [NAME] [key=value ...]``."""

from typing import Annotated

import typer

from grit.cli.options import Plugins, plugin_override


def recipes(
    name: Annotated[str | None, typer.Argument(help="A recipe, or a YAML file of your own.")] = None,
    overrides: Annotated[list[str] | None, typer.Argument(help="key=value, e.g. model.num_layers=4")] = None,
    plugin: Plugins = None,
) -> None:
    """List the recipes, or print one in full, overrides applied."""
    from grit.recipe.load import load_recipe, recipe_title, recipe_yaml
    from grit.recipe.load import recipes as names

    if name is None:
        width = max(map(len, names()))
        for each in names():
            print(f"{each:{width}}  {recipe_title(each)}")
        print("\nNext: grit recipes NAME prints one in full.")
    else:
        print(recipe_yaml(load_recipe(name, *(overrides or []), *plugin_override(plugin))), end="")
