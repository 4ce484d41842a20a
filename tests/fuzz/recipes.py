"""Recipe files: damaged ones, hostile YAML, odd values."""

from pathlib import Path
from random import Random
from typing import Any

from grit.recipe.load import load_recipe, recipe_yaml, recipes
from tests.fuzz.mutation import NUMBERS, TEXTS, damaged, text_of

VALUES = [
    *NUMBERS,
    *TEXTS,
    "[1, 2]",
    "{a: 1}",
    "*a",
    "&a x",
    "!!int x",
    "!!float abc",
    "!!python/name:os.system",
    "2001-13-45",
    "2001-01-01",
    "1:30",
    "no",
    "on",
    "~",
    "- 1",
    "? x",
    "|\n  x",
    ">-\n  y",
    "'",
    '"\\ud800"',
    '"\\0"',
    "[" * 500,
    "{" * 500,
    "<<",
    "0o10",
    "010",
    ".5",
    "+1e3",
    "1e-3",
]
SENSIBLE = [
    "1",
    "2",
    "4",
    "0.5",
    "1e-3",
    "1.0e-05",
    "true",
    "false",
    "null",
    "all",
    "edges",
    "khop-2",
    "spd",
    "gelu",
    "layer",
    "mean",
    "zinc",
]
KEYS = [
    "dataset",
    "base",
    "model",
    "train",
    "encoding",
    "paper",
    "baseline",
    "train.lr",
    "lr",
    "epochs",
    "<<",
    "",
    "3",
    "~",
    "[a]",
    "? a",
    "&a a",
    "*a",
    "model.num_layers",
    "seed",
]


def make_input(rng: Random) -> bytes:
    """The bytes of a file."""
    match rng.randint(0, 6):
        case 0 | 1 | 2 | 6:
            name = rng.choice(recipes())
            text = recipe_yaml(load_recipe(name)) if rng.random() < 0.5 else f"base: {name}\nmodel: {{num_layers: 2}}\n"
            lines = text.splitlines(keepends=True)
            if rng.random() < 0.5:
                place = rng.randrange(len(lines))
                key = lines[place].partition(":")[0]
                lines[place] = f"{key}: {rng.choice(SENSIBLE if rng.random() < 0.5 else VALUES)}\n"
            if rng.random() < 0.1:
                lines.insert(rng.randint(0, len(lines)), rng.choice(lines))
            content = "".join(lines).encode("utf-8", "surrogatepass")
            return damaged(rng, content, 1) if rng.random() < 0.5 else content
        case 3:
            lines = [
                f"{'  ' * rng.randint(0, 2)}{rng.choice(KEYS)}: {rng.choice(VALUES)}\n"
                for _ in range(rng.randint(1, 6))
            ]
            return ("base: zinc\n" * rng.randint(0, 1) + "".join(lines)).encode("utf-8", "surrogatepass")
        case 4:
            return text_of(rng, "a1 :-[]{}\n\t#&*!|>'\"%@`,?.\0é<~", 200).encode()
        case _:
            return rng.randbytes(rng.randint(0, 60))


def try_it(value: bytes, folder: Path) -> None:
    """Read it; what was read is the same once it is written and read again."""
    path = folder / "mine.yaml"
    path.write_bytes(value)
    recipe: Any = load_recipe(path)
    path.write_text(recipe_yaml(recipe), encoding="utf-8")
    assert load_recipe(path) == recipe
