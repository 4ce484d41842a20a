"""Other people's entries: a plugin is a Python module that adds to the tables when it is imported.

    import grit
    grit.ENCODINGS["mine"] = ...

It is named in a recipe (``plugins: [my_module, ./mine.py]``), on the command line (``--plugin mine.py``), or installed with the
entry point group ``grit.plugins``. A plugin is code, and runs as such. A recipe that you start may name files. A run folder may
come from anybody, so its plugins are loaded only if they are installed modules: a file must be named again.

A plugin adds and never replaces: otherwise a run would mean one thing with it and another without.
"""

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from grit.datasets.registry import DATASETS
from grit.encodings import ENCODINGS
from grit.errors import GritError
from grit.learning.losses import LOSSES
from grit.learning.metrics import METRICS
from grit.learning.optimizers import OPTIMIZERS
from grit.learning.schedules import SCHEDULES
from grit.models import MODELS, STATISTICS
from grit.nn.attention import ATTENTIONS
from grit.nn.heads import HEADS
from grit.nn.norm import NORMS

GROUP = "grit.plugins"

# By the names of a run's recipe, or of its data, entries of these decide what the run computes and what it writes.
_TABLES: dict[str, dict[str, Any]] = {
    "ATTENTIONS": ATTENTIONS,
    "DATASETS": DATASETS,
    "ENCODINGS": ENCODINGS,
    "HEADS": HEADS,
    "LOSSES": LOSSES,
    "METRICS": METRICS,
    "MODELS": MODELS,
    "NORMS": NORMS,
    "OPTIMIZERS": OPTIMIZERS,
    "SCHEDULES": SCHEDULES,
    "STATISTICS": STATISTICS,
}

# As it was when it was guarded: what a table of a higher layer held before the plugin that first asked for it.
_at_first: dict[str, dict[str, Any]] = {}
_loaded: dict[Path, ModuleType] = {}

# What somebody else's code may raise; not what stops any program, such as Ctrl-C or the end of the memory.
_RAISED = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    NameError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
)


def guard(name: str, table: dict[str, Any]) -> None:
    """Keep the entries of another table from being replaced by plugins."""
    _TABLES[name], _at_first[name] = table, dict(table)


def load_plugin(name: str, beside: Path | None = None) -> None:
    """Import a plugin, once.

    Args:
        name: A module that can be imported, or the path of a file that ends in ``.py``.
        beside: The folder that a relative path begins at; the current one if not given.
    """
    if name.endswith(".py"):
        _load_file(Path(beside or ".", name).expanduser().resolve())
        return
    try:
        with _adding(name):
            importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise _broken(name, error) from error
        raise GritError(
            f"there is no module {name!r} to load as a plugin. Install it, or name a file by its path, such as ./{name}.py."
        ) from None
    except _Replaced:
        raise
    except _RAISED as error:
        raise _broken(name, error) from error


def load_installed_plugins() -> None:
    """Import the plugins of installed packages."""
    for name in installed_plugins():
        load_plugin(name)


def installed_plugins() -> list[str]:
    """The modules that installed packages name as plugins."""
    return [point.module for point in entry_points(group=GROUP)]


class _Replaced(GritError):
    """A plugin gave an entry of a table another meaning."""


@contextmanager
def _adding(name: str) -> Iterator[None]:
    """Within the block, tables may only grow; where that fails, or anything else does, they stay as they were."""
    before = {table: dict(entries) for table, entries in _TABLES.items()}
    try:
        yield
        for table, entries in _TABLES.items():
            first = before[table] if table in before else _at_first[table]
            replaced = [key for key, entry in first.items() if entries.get(key) is not entry]
            if replaced:
                raise _Replaced(
                    f"the plugin {name!r} replaces {replaced[0]!r} of {table}. Give its entry another name."
                )
    except _RAISED:
        for table, entries in _TABLES.items():
            first = before[table] if table in before else _at_first[table]
            entries.clear()
            entries.update(first)
        raise


def _load_file(path: Path) -> None:
    if path in _loaded:
        return
    if not path.is_file():
        raise GritError(f"there is no plugin {str(path)!r}.")
    name = f"grit_plugin_{path.stem}_{sha256(str(path).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise GritError(f"{str(path)!r} cannot be loaded as a Python module.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # so that its classes can be pickled to worker processes
    try:
        with _adding(str(path)):
            spec.loader.exec_module(module)
    except _RAISED as error:
        del sys.modules[name]
        raise error if isinstance(error, _Replaced) else _broken(str(path), error) from error
    _loaded[path] = module


def _broken(name: str, error: Exception) -> GritError:
    at = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == name]
    line = error.lineno if isinstance(error, SyntaxError) else at[-1] if at else None
    what = f"{type(error).__name__}: {error}"
    return GritError(f"the plugin {name!r} fails when it is imported: {'' if line is None else f'line {line}: '}{what}")
