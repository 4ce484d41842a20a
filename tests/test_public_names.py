import ast
from collections import defaultdict
from importlib import import_module
from pathlib import Path

import pytest

import grit

SOURCES = Path(grit.__file__).parent


def for_type_checkers():
    """What the imports under ``if TYPE_CHECKING`` give: (module, name)."""
    tree = ast.parse(Path(grit.__file__).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    return [(each.module, name.name) for each in block.body for name in each.names]


def test_every_public_name_is_what_type_checkers_take_it_for():
    named = for_type_checkers()
    assert sorted(name for _, name in named) == sorted(grit.__all__)
    for module, name in named:
        assert getattr(grit, name) is getattr(import_module(module), name)
    assert set(grit.__all__) <= set(dir(grit))


def test_nothing_else_resolves():
    with pytest.raises(AttributeError, match="module 'grit' has no attribute 'banana'"):
        _ = grit.banana


def test_a_type_has_its_name_to_itself():
    """Two public classes of one name and different meaning mislead whoever searches for it."""
    places = defaultdict(list)
    for path in SOURCES.rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(SOURCES)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
