"""Stores with damaged files: what `verify` lets pass is what was stored; what it does not see is no crash."""

import json
import shutil
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from grit.batches.pair_batch import PairBatch
from grit.batches.spec import BatchSpec
from grit.errors import GritError
from grit.graphs.store import GraphStore
from tests.fuzz import scene
from tests.fuzz.mutation import NUMBERS, damage_folder, folder_damage


def make_input(rng: Random) -> dict[str, Any]:
    """Damage to the files, and a change of the manifest."""
    names = sorted(path.name for path in (scene.folder() / "store").iterdir())
    edit = None
    if rng.random() < 0.3:
        edit = [rng.randint(0, 10**6), rng.choice([*NUMBERS, "[]", "{}", '"int64"', '"../x"', "-5", "1e30", "[1,2,3]"])]
    return {"steps": [] if edit and rng.random() < 0.7 else folder_damage(rng, names), "edit": edit}


def edit_json(path: Path, place: int, text: str) -> None:
    """Put another value at some place of a JSON file."""
    tree = json.loads(path.read_text())
    places: list[tuple[Any, Any]] = []

    def visit(node: Any) -> None:
        for key in node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
            places.append((node, key))
            visit(node[key])

    visit(tree)
    node, key = places[place % len(places)]
    node[key] = "\0placeholder"
    path.write_text(json.dumps(tree).replace(json.dumps("\0placeholder"), text or '""'))


def try_it(value: dict[str, Any], folder: Path) -> None:
    """Open, read without verifying, verify, and compare."""
    path = folder / "store"
    shutil.copytree(scene.folder() / "store", path)
    if value["edit"]:
        edit_json(path / "manifest.json", *value["edit"])
    damage_folder(path, value["steps"])
    store = GraphStore.open(path)
    try:
        scene.predictor().predict_store(store)
        PairBatch.from_store(store, np.arange(len(store)), BatchSpec(3))
        _ = store.skipped
    except GritError:
        pass  # refused late, but refused
    store.verify()
    wanted = scene.store()
    for name in wanted.manifest.arrays:
        assert np.array_equal(store.array(name), wanted.array(name)), f"{name} is not what was stored"
