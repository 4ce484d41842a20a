"""docs/extending.md shows what the example plugins say, and knows all tables and checks."""

import re
from pathlib import Path

import pytest

import grit

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
FILES = sorted((ROOT / "examples" / "plugins").glob("*.py"))


@pytest.mark.parametrize(
    "block", re.findall(r"```python\n(.*?)```", TEXT, re.S), ids=lambda block: block.split("\n")[0]
)
def test_every_piece_of_python_is_in_an_example(block):
    assert [file.stem for file in FILES if block in file.read_text(encoding="utf-8")]


def test_every_example_is_shown():
    assert [file.name for file in FILES if f"From `examples/plugins/{file.name}`" not in TEXT] == []


def test_every_check_is_named():
    assert [
        name for name in grit.testing.__all__ if name.startswith("check") and f"grit.testing.{name}" not in TEXT
    ] == []
