"""Tests, benchmarks, examples and scripts use public names only, so that the private ones are free to go.

Ruff (SLF001) reports attributes. It does not see imports, names in strings, and programs in strings: those are found here.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted(
    path.relative_to(ROOT)
    for folder in ("tests", "benchmarks", "examples", "scripts")
    for path in (ROOT / folder).rglob("*.py")
)
OURS = ("grit", "tests")
BY_NAME = ("getattr", "setattr", "delattr", "hasattr", "attrgetter", "object")  # `object`: of mock.patch
PRIVATE = re.compile(r"_(?!_)\w+|__\w*[^_]")  # not `_` alone, and not a name like `__init__`
DOTTED = re.compile(rf"(?:{'|'.join(OURS)})(?:\.\w+)+")
FREE = ("_replace", "_asdict", "_fields", "_make", "_exit")  # of named tuples; of os


def is_private(dotted: str) -> bool:
    """Whether a part of a dotted name is private."""
    return any(PRIVATE.fullmatch(part) and part not in FREE for part in dotted.split("."))


def imported(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """The dotted names that an import of our packages asks for."""
    if isinstance(node, ast.Import):
        names = [name.name for name in node.names]
    else:
        package = "tests" if node.level else ""
        names = [".".join(filter(None, (package, node.module, name.name))) for name in node.names]
    return (name for name in names if name.partition(".")[0] in OURS)


def in_text(text: str) -> Iterator[str]:
    """Private names in a string that is itself a dotted name, or a program that imports one of our packages."""
    if DOTTED.fullmatch(text):
        yield from filter(is_private, [text])
    elif re.search(rf"\b(?:import|from) (?:{'|'.join(OURS)})\b", text):
        try:
            program = ast.parse(text)
        except SyntaxError:  # prose, or a piece of a program
            return
        yield from private_names(program)
        yield from (
            node.attr for node in ast.walk(program) if isinstance(node, ast.Attribute) and is_private(node.attr)
        )


def private_names(tree: ast.AST) -> Iterator[str]:
    """Private names that are imported, given to `setattr` and its like, or stand in strings."""
    for node in ast.walk(tree):
        match node:
            case ast.Import() | ast.ImportFrom():
                yield from filter(is_private, imported(node))
            case ast.Call(func=ast.Name(id=function) | ast.Attribute(attr=function)) if function in BY_NAME:
                texts = [each.value for each in node.args if isinstance(each, ast.Constant)]
                yield from (text for text in texts if isinstance(text, str) and PRIVATE.fullmatch(text))
            case ast.Constant(value=str(text)):
                yield from in_text(text)


@pytest.mark.parametrize(
    "program",
    [
        "from grit.graphs.store import _identity",
        "from grit.graphs import _store as store",
        "from grit._graphs import store",
        "import grit.graphs._store",
        "from .helpers import _help",
        "def test():\n    from tests.golden import _case",
        "monkeypatch.setattr(store, '_LIMIT', 0)",
        "monkeypatch.setattr('grit.graphs.store._LIMIT', 0)",
        "limit = getattr(store, '_LIMIT')",
        "mock.patch('grit.graphs.store.GraphStore._map')",
        "run('import grit\\ngrit.graphs.store._LIMIT = 0')",
        "run('from grit.graphs.store import _LIMIT')",
    ],
)
def test_a_private_name_is_found(program):
    assert len(set(private_names(ast.parse(program)))) == 1


@pytest.mark.parametrize(
    "program",
    [
        "from grit.graphs.store import GraphStore",
        "from torch.utils import _pytree",
        "monkeypatch.setattr(store, 'LIMIT', 0)",
        "monkeypatch.setattr('grit.graphs.store.LIMIT', 0)",
        "monkeypatch.setattr(GraphStore, '__len__', zero)",
        "columns = ['_pred', 'a_b']",
        "run('import grit, os\\nos._exit(0)')",
        "'Where private names of grit come from: import grit, and look.'",
    ],
)
def test_a_public_name_is_not(program):
    assert list(private_names(ast.parse(program))) == []


def test_only_public_names_are_used():
    assert len(FILES) > 100
    found = {
        path.as_posix(): list(private_names(ast.parse((ROOT / path).read_text(encoding="utf-8")))) for path in FILES
    }
    found.pop("tests/test_private_names.py")  # the examples above
    assert {path: names for path, names in found.items() if names} == {}
