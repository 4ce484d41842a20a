"""The table of kinds: which modules make and try inputs, and how many of a thousand inputs each gets."""

from types import ModuleType

from tests.fuzz import (
    archives,
    checkpoints,
    commands,
    downloads,
    graph_files,
    overrides,
    recipes,
    run_folders,
    smiles,
    stores,
    tables,
)

KINDS: dict[str, tuple[ModuleType, int]] = {
    "smiles": (smiles, 200),
    "tables": (tables, 150),
    "recipes": (recipes, 200),
    "overrides": (overrides, 150),
    "stores": (stores, 90),
    "checkpoints": (checkpoints, 60),
    "run_folders": (run_folders, 40),
    "downloads": (downloads, 30),
    "archives": (archives, 40),
    "graph_files": (graph_files, 25),
    "commands": (commands, 15),
}
