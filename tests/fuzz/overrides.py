"""Overrides on the command line: unknown keys, odd values."""

from pathlib import Path
from random import Random

from grit.nn.build import build_model
from grit.training.config import Recipe
from grit.training.recipe import load_recipe, recipe_yaml
from tests.fuzz.mutation import damaged, text_of
from tests.fuzz.recipes import KEYS, VALUES


def _leaves() -> list[str]:
    return [
        f"{section}.{name}"
        for section, field in Recipe.model_fields.items()
        for name in getattr(field.annotation, "model_fields", {})
    ]


def make_input(rng: Random) -> list[str]:
    """One to three overrides."""
    return [_one(rng) for _ in range(rng.randint(1, 3))]


def _one(rng: Random) -> str:
    key = rng.choice(_leaves()) if rng.random() < 0.7 else rng.choice(KEYS)
    value = (
        rng.choice(VALUES)
        if rng.random() < 0.5
        else str(
            rng.choice(
                [
                    0,
                    1,
                    2,
                    3,
                    0.5,
                    1e-3,
                    -1,
                    10**6,
                    10**20,
                    "all",
                    "khop-2",
                    "khop-0",
                    f"khop-{10**25}",
                    "spd",
                    "gelu",
                    "layer",
                ]
            )
        )
    )
    text = f"{key}={value}"
    match rng.randint(0, 5):
        case 0:
            return damaged(rng, text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogateescape")
        case 1:
            return text_of(rng, "a1.=:-[]{} \n#&*!'\"é", 30)
    return text


def try_it(value: list[str], folder: Path) -> None:
    """Apply them; a small model of what is accepted can be made."""
    recipe = load_recipe("zinc", *value)
    path = folder / "mine.yaml"
    path.write_text(recipe_yaml(recipe), encoding="utf-8")
    assert load_recipe(path) == recipe
    size = recipe.model.num_layers * recipe.model.hidden_dim**2 * recipe.model.head_layers
    if recipe.dataset == "zinc" and size < 10**6 and recipe.encoding.walk_steps < 100:
        build_model(recipe)
