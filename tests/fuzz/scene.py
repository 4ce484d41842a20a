"""What the inputs are tried on: a table, a store and a small trained model, made once."""

import functools
import os
from pathlib import Path

import numpy as np

from grit.datasets import from_csv
from grit.graphs.store import GraphStore
from grit.recipe.presets import preset_recipe
from grit.training.predictor import Predictor, load
from grit.training.train import RunOptions, train

GOOD = [
    "CCO",
    "c1ccccc1O",
    "CC(=O)Oc1ccccc1C(=O)O",
    "Cn1cnc2c1c(=O)n(C)c(=O)n2C",
    "[Na+].[Cl-]",
    "C",
    "N#N",
    "C/C=C\\C",
]
SMALL = ("encoding.walk_steps=3", "model.num_layers=1", "model.hidden_dim=8", "model.num_heads=2", "train.epochs=1")


def make(folder: Path) -> None:
    """Fill a folder."""
    lines = [f"m{k},{'C' * (k % 9 + 1)}{'O' if k % 2 else 'N'},{k % 9 + 0.5},{k % 2}" for k in range(24)]
    (folder / "table.csv").write_text("\n".join(["name,smiles,y,label", *lines, "bad,C(,1.0,1", ""]))
    store = from_csv(folder / "table.csv", targets="y", out=folder / "store", processes=1, say=lambda line: None)
    recipe = preset_recipe("fast", store.schema, *SMALL, dataset=str(folder / "store"))
    train(recipe, folder / "run", store=store, options=RunOptions(device="cpu"))


def folder() -> Path:
    """Where it is; the runner says so."""
    return Path(os.environ["GRIT_FUZZ_SCENE"])


@functools.cache
def predictor() -> Predictor:
    """The trained model."""
    return load(folder() / "run")


@functools.cache
def store() -> GraphStore:
    """What it was trained on."""
    return GraphStore.open(folder() / "store")


@functools.cache
def good_predictions() -> dict[str, float]:
    """What the model says of molecules that are fine."""
    return dict(zip(GOOD, predictor().predict(GOOD)[:, 0].tolist(), strict=True))


def check_good(smiles: str, value: float) -> None:
    """A molecule that is fine is predicted as ever, whatever stands beside it."""
    wanted = good_predictions().get(smiles)
    if wanted is not None:
        assert np.isclose(value, wanted, rtol=1e-4, atol=1e-5), f"{smiles} is {value}, was {wanted}"
