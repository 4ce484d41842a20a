"""SMILES: misprints, odd atoms, long chains, other alphabets; good ones beside them are predicted as ever."""

import re
import warnings
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from tests.fuzz import scene
from tests.fuzz.mutation import TEXTS, damaged, text_of

PARTS = [
    "C",
    "c1ccccc1",
    "[nH]",
    "(",
    ")",
    "=",
    "#",
    "[Fe+2]",
    "[13C@@H]",
    ".",
    "%99",
    "1",
    "[*]",
    "[H]",
    "[U]",
    "/",
    "\\",
    "$",
    "*",
    "->",
    "[Cl-]",
    "@",
    ">>",
    "|",
    "[C+99]",
    "[999C]",
    "[C:99]",
    "{}",
    "[Xx]",
    "0",
    " ",
    "B",
    "[te]",
]


def make_input(rng: Random) -> list[Any]:
    """A list of molecules, good and bad."""
    return [_one(rng) for _ in range(rng.randint(0 if rng.random() < 0.02 else 1, 6))]


def _one(rng: Random) -> Any:
    match rng.randint(0, 9):
        case 0 | 1 | 2:
            return rng.choice(scene.GOOD)
        case 3 | 4:
            return damaged(rng, rng.choice(scene.GOOD).encode()).decode("utf-8", "surrogateescape")
        case 5 | 6:
            return "".join(rng.choice(PARTS) for _ in range(rng.randint(1, 12)))
        case 7:
            return text_of(rng, "".join(PARTS))
        case 8:
            return rng.choice(
                ["C" * rng.randint(1, 250), "C(" * 60 + "C" + ")" * 60, "C1" * 30, ".".join(["C"] * 60), "(" * 2000]
            )
        case _:
            return rng.choice([*TEXTS, "", "nan", None, 3, 1.5, b"CCO", ["C"]])


def try_it(value: list[Any], folder: Path) -> None:
    """Predict them together."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        out = scene.predictor().predict(value)
    assert out.shape == (len(value), 1), f"{out.shape} for {len(value)} molecules"
    missing = int(np.isnan(out).sum())
    told = [re.match(r"(\d+) SMILES cannot be read", str(each.message)) for each in said]
    named = sum(int(each[1]) for each in told if each)
    assert missing == named, f"{missing} have no number, {named} were named"
    assert not np.isinf(out).any()
    for each, number in zip(value, out[:, 0], strict=True):
        if isinstance(each, str):
            scene.check_good(each, number)
