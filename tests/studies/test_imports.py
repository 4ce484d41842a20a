"""Imports go one way: studies and the command line import the core, the core never imports them."""

import ast
from pathlib import Path

import pytest

import grit

SOURCE = Path(grit.__file__).parent
OUTER = {"studies": ("studies", "cli"), "cli": ("cli", "__main__.py")}


def imported(file: Path) -> set[str]:
    """Every module that a file names in an import, wherever the import stands."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: a relative import"
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


@pytest.mark.parametrize("room", sorted(OUTER))
def test_the_core_does_not_import(room):
    files = [file for file in SOURCE.rglob("*.py") if file.relative_to(SOURCE).parts[0] not in OUTER[room]]
    assert len(files) > 60
    module = f"grit.{room}"
    offenders = [
        str(file.relative_to(SOURCE))
        for file in files
        if any(name == module or name.startswith(f"{module}.") for name in imported(file))
    ]
    assert offenders == []


def test_the_check_would_find_one(tmp_path):
    (tmp_path / "bad.py").write_text("def f():\n    from grit import studies\n    import grit.cli.train\n")
    assert imported(tmp_path / "bad.py") == {"grit", "grit.studies", "grit.cli.train"}
