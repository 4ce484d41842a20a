"""What a run records about where it was trained: ``environment.json``."""

import os
import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from grit.recipe.plugins import installed_plugins


def environment() -> dict[str, Any]:
    """Versions, installed plugins, commit, machine and command of this process."""
    packages = ("torch-grit", "torch", "torch-geometric", "numpy", "lightning-fabric", "safetensors", "rdkit")
    return {
        "packages": {name: _version(name) for name in packages},
        "plugins": installed_plugins(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "commit": _commit(),
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _commit() -> str | None:
    """Commit of the checkout that grit is imported from, if it is one."""
    try:
        done = subprocess.run(
            ["git", "rev-parse", "HEAD"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None
