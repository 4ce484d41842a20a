"""Other people's entries: a plugin is a Python module that adds to the tables when it is imported.

    import grit
    grit.ENCODINGS["mine"] = ...

It is named in a recipe (``plugins: [my_module, ./mine.py]``), on the command line (``--plugin mine.py``), or installed with the
entry point group ``grit.plugins``. A plugin is code, and runs as such. A recipe that you start may name files. A run folder may
come from anybody, so its plugins are loaded only if they are installed modules: a file must be named again.
"""

import importlib
import importlib.util
import sys
from hashlib import sha256
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

from grit.errors import GritError, shown

GROUP = "grit.plugins"
_loaded: dict[Path, ModuleType] = {}


def load_plugin(name: str, beside: Path | None = None) -> None:
    """Import a plugin, once.

    Args:
        name: A module that can be imported, or the path of a file that ends in ``.py``.
        beside: The folder that a relative path begins at; the current one if not given.
    """
    if name.endswith(".py"):
        _load_file(Path(beside or ".", name).expanduser())
        return
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not name.startswith(error.name):
            raise _broken(name, error) from error
        raise GritError(
            f"there is no module {name!r} to load as a plugin. Install it, or name a file by its path, such as ./{name}.py."
        ) from None
    except (ImportError, SyntaxError, TypeError, ValueError) as error:
        raise _broken(name, error) from error


def load_installed_plugins() -> None:
    """Import the plugins of installed packages."""
    for point in entry_points(group=GROUP):
        load_plugin(point.module)


def _load_file(path: Path) -> None:
    path = path.resolve()
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
        spec.loader.exec_module(module)
    except (ImportError, SyntaxError, TypeError, ValueError, NameError, AttributeError, KeyError) as error:
        del sys.modules[name]
        raise _broken(str(path), error) from error
    _loaded[path] = module


def _broken(name: str, error: Exception) -> GritError:
    return GritError(f"the plugin {shown(name)} fails when it is imported: {type(error).__name__}: {error}")
