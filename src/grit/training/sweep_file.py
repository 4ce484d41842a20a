"""The file of a sweep: a recipe, fixed overrides, and a grid of values whose combinations are trained, each with every seed."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from grit.errors import GritError, shown
from grit.recipe.bounded_yaml import read_yaml
from grit.recipe.config import Recipe
from grit.recipe.load import load_recipe, scale_warmup
from grit.recipe.plugins import load_plugin

KEYS = ("recipe", "overrides", "grid", "seeds", "plugins")
MAX_RUNS = 10_000
_SEED = "train.seed"
_LONGEST = 120  # characters of a folder's name; file systems take 255 bytes


@dataclass(frozen=True)
class SweepRun:
    """One run of a sweep.

    Attributes:
        combination: Name of its folder, which its values make up.
        values: Of the grid, by dotted key.
        recipe: What is trained.
    """

    combination: str
    values: dict[str, Any]
    recipe: Recipe

    @property
    def folder(self) -> Path:
        """Below that of the sweep."""
        return Path(self.combination) / f"seed{self.recipe.train.seed}"


def read_sweep(path: Path) -> list[SweepRun]:
    """All runs of a sweep; an error for any of them is raised here."""
    tree = read_yaml(path, "sweep")
    where = f"sweep {str(path)!r}"
    if not isinstance(tree, dict) or not tree:
        raise GritError(f"{where} must be a mapping with the keys {', '.join(KEYS)}, got {shown(tree)}.")
    unknown = [key for key in tree if key not in KEYS]
    if unknown:
        raise GritError(f"{where}: unknown key {shown(unknown[0])}. Known here: {', '.join(KEYS)}.")
    name = tree.get("recipe")
    if not isinstance(name, str):
        raise GritError(f"{where}: recipe: expected the name of a recipe or of a YAML file, got {shown(name)}.")
    if name.endswith((".yaml", ".yml")):
        name = str(path.parent / name)
    plugins = _plugins(tree.get("plugins"), path.parent, where)
    fixed = _fixed(tree.get("overrides"), where)
    grid = _grid(tree.get("grid"), where)
    seeds = _seeds(tree.get("seeds"), where)
    _check_apart(fixed, grid, seeds, where)
    base = load_recipe(name)
    every = [*base.plugins, *[plugin for plugin in plugins if plugin not in base.plugins]]
    fixed += [_override("plugins", every)] if plugins else []
    count = prod(map(len, grid.values())) * max(1, len(seeds))
    if count > MAX_RUNS:
        raise GritError(f"{where}: {count:,} runs; at most {MAX_RUNS:,} make sense. Leave out some values of the grid.")
    names = _short_keys(list(grid))
    chosen: list[int | None] = [*seeds] or [None]
    runs = []
    for combination in product(*grid.values()):
        values = dict(zip(grid, combination, strict=True))
        folder = _folder_name({names[key]: value for key, value in values.items()})
        for seed in chosen:
            changes = [*fixed, *[_override(key, value) for key, value in values.items()]]
            changes += [] if seed is None else [_override(_SEED, seed)]
            try:
                recipe = scale_warmup(load_recipe(name, *changes), base, changes, None)
            except GritError as error:
                raise GritError(f"{where}, {folder}: {error}") from None
            runs.append(SweepRun(folder, values, recipe))
    _check_names(runs, where)
    return runs


def _override(key: str, value: Any) -> str:
    return f"{key}={json.dumps(value, ensure_ascii=False)}"


def _plugins(names: Any, beside: Path, where: str) -> list[str]:
    names = [] if names is None else names
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        raise GritError(f"{where}: plugins must be a list of modules or files, got {shown(names)}.")
    for name in names:
        load_plugin(name, beside)
    return [str((beside / name).resolve()) if name.endswith(".py") else name for name in names]


def _fixed(overrides: Any, where: str) -> list[str]:
    """As ``grit train`` takes them, from ``key: value`` or from a list of ``key=value``."""
    if overrides is None:
        return []
    if isinstance(overrides, Mapping):
        return [_override(key, value) for key, value in overrides.items()]
    if isinstance(overrides, list) and all(isinstance(each, str) for each in overrides):
        return list(overrides)
    raise GritError(
        f"{where}: overrides: expected keys and values, such as train.epochs: 50, or a list of key=value, "
        f"got {shown(overrides)}."
    )


def _grid(grid: Any, where: str) -> dict[str, list[Any]]:
    grid = {} if grid is None else grid
    if not isinstance(grid, Mapping):
        raise GritError(
            f"{where}: grid: expected keys with lists of values, such as train.lr: [1e-3, 3e-3], got {shown(grid)}."
        )
    for key, values in grid.items():
        if not isinstance(values, list) or not values:
            raise GritError(f"{where}: grid: {key}: expected a list of values, such as [1, 2], got {shown(values)}.")
        texts = [json.dumps(value) for value in values]
        twice = [text for number, text in enumerate(texts) if text in texts[:number]]
        if twice:
            raise GritError(f"{where}: grid: {key}: the value {twice[0]} stands twice; keep one of them.")
    return dict(grid)


def _seeds(seeds: Any, where: str) -> list[int]:
    seeds = [] if seeds is None else seeds
    is_list = isinstance(seeds, list) and all(isinstance(seed, int) and not isinstance(seed, bool) for seed in seeds)
    if not is_list or len(set(seeds)) != len(seeds):
        raise GritError(
            f"{where}: seeds: expected a list of different whole numbers, such as [0, 1], got {shown(seeds)}."
        )
    return list(seeds)


def _check_apart(fixed: Sequence[str], grid: Mapping[str, Any], seeds: Sequence[int], where: str) -> None:
    named = {override.partition("=")[0].strip() for override in fixed}
    both = [key for key in grid if key in named]
    if both:
        raise GritError(f"{where}: {both[0]} stands in overrides and in grid; keep one of them.")
    if seeds and (_SEED in named or _SEED in grid):
        raise GritError(f"{where}: {_SEED} and seeds say the same thing; keep seeds.")
    if "plugins" in named or "plugins" in grid:
        raise GritError(f"{where}: plugins is a key of the sweep itself, beside recipe.")


def _short_keys(keys: Sequence[str]) -> dict[str, str]:
    """``train.lr`` -> ``lr``, where that is one key only."""
    last = [key.rpartition(".")[2] for key in keys]
    return {key: short if last.count(short) == 1 else key for key, short in zip(keys, last, strict=True)}


def _folder_name(values: Mapping[str, Any]) -> str:
    """``lr=0.001,num_layers=2``, in characters that every file system takes; a checksum stands for what is left out."""
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in values.items()}
    whole = ",".join(f"{key}={text}" for key, text in texts.items()) or "all"
    name = re.sub(r"[^A-Za-z0-9._=,+-]", "_", whole)
    if name == whole and len(name) <= _LONGEST:
        return name
    return f"{name[:_LONGEST]}-{sha256(whole.encode()).hexdigest()[:8]}"


def _check_names(runs: Sequence[SweepRun], where: str) -> None:
    """Raise if two combinations are the same thing, for example ``1`` and ``1.0``."""
    seen: dict[str, SweepRun] = {}
    for run in runs:
        key = f"{run.folder}".lower()  # not every file system tells letters of either case apart
        text = run.recipe.model_dump_json()
        for known in (key, text):
            if known in seen:
                raise GritError(
                    f"{where}: {seen[known].combination} and {run.combination} are the same run; keep one of them."
                )
        seen[key] = seen[text] = run
