"""Run folders with files removed, damaged, exchanged, replaced by folders: predictions as ever, or a message."""

import shutil
from pathlib import Path
from random import Random
from typing import Any

from grit.training.predictor import load
from grit.training.run_folder import RunFolder
from grit.training.train import RunOptions, train
from tests.fuzz import scene
from tests.fuzz.mutation import NUMBERS, damage_folder, folder_damage
from tests.fuzz.stores import edit_json


def make_input(rng: Random) -> dict[str, Any]:
    """Damage to the files, and what is done with the folder."""
    run = scene.folder() / "run"
    names = sorted(str(path.relative_to(run)) for path in run.rglob("*"))
    edit = None
    if rng.random() < 0.2:
        edit = [
            rng.choice(["data.json", "result.json", "environment.json"]),
            rng.randint(0, 10**6),
            rng.choice([*NUMBERS, "[]", "{}", '"x"']),
        ]
    return {
        "steps": [] if edit and rng.random() < 0.7 else folder_damage(rng, names),
        "edit": edit,
        "resume": rng.random() < 0.3,
    }


def try_it(value: dict[str, Any], folder: Path) -> None:
    """Predict with it, or go on with it."""
    original = scene.folder() / "run"
    path = folder / "run"
    shutil.copytree(original, path)
    if value["edit"]:
        name, place, text = value["edit"]
        edit_json(path / name, place, text)
    damage_folder(path, value["steps"])
    if value["resume"]:
        result = train(
            RunFolder(original).recipe(), path, store=scene.store(), resume=True, options=RunOptions(device="cpu")
        )
        assert result["metric"] == "mae"
    predictor = load(path)
    for smiles, number in zip(scene.GOOD, predictor.predict(scene.GOOD)[:, 0], strict=True):
        scene.check_good(smiles, number)
