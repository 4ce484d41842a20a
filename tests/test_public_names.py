import ast
from importlib import import_module
from pathlib import Path

import pytest

import grit


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
