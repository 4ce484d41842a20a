"""Overrides on the command line: unknown keys, odd values."""

import functools
from pathlib import Path
from random import Random

import torch
from torch_geometric.data import Data

from grit.recipe.builder import build_batch, build_model
from grit.recipe.load import load_recipe, recipe_yaml
from tests.fuzz.mutation import damaged, text_of
from tests.fuzz.recipes import KEYS, SENSIBLE, VALUES

LARGE = ["1000000", "9" * 20, "khop-0", "khop-" + "9" * 25, "99999", "1000000001", "1e308"]


# Values of the type of each leaf, which are mostly accepted.
OF_TYPE: dict[type, list[str]] = {
    bool: ["true", "false"],
    int: ["1", "2", "4", "8", "64", "null", "0"],
    float: ["0.0", "0.1", "0.9", "1", "1e-3", "5.0", "1e30", "null"],
    str: SENSIBLE,
}


@functools.cache
def _leaves() -> dict[str, list[str]]:
    filled = (
        "train.patience=5",
        "train.max_pairs=100",
        "train.max_seconds=5.0",
        "train.loss=l1",
        "train.metric=mae",
    )  # null has no type
    recipe = load_recipe("zinc", *filled).model_dump()
    return {
        f"{section}.{name}": [*OF_TYPE[type(value)], str(value)]
        for section, part in recipe.items()
        if isinstance(part, dict)
        for name, value in part.items()
        if value is not None  # null has no type: such a key gets any value
    }


def make_input(rng: Random) -> list[str]:
    """One to three overrides."""
    return [_one(rng) for _ in range(rng.randint(1, 3))]


def _one(rng: Random) -> str:
    key = rng.choice([*_leaves()]) if rng.random() < 0.9 else rng.choice(KEYS)
    usual = _leaves().get(key, SENSIBLE)
    text = f"{key}={rng.choice(usual if rng.random() < 0.7 else [*VALUES, *LARGE])}"
    match rng.randint(0, 19):
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
    options = recipe.model.options()
    size = options["num_layers"] * options["hidden_dim"] ** 2 * options.get("head_layers", 1)
    if recipe.dataset == "zinc" and size < 10**6 and recipe.encoding.walk_steps < 100:
        graph = Data(
            x=torch.tensor([[0], [1], [2]]),
            edge_index=torch.tensor([[0, 1], [1, 0]]),
            edge_attr=torch.ones(2, 1).long(),
        )
        out = build_model(recipe).eval()(build_batch(recipe, [graph, graph]))
        assert torch.isfinite(out).all()
