"""Every example runs, and does what it says."""

import runpy
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(name):
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"]()


def test_every_example_has_a_test():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {
        name.removeprefix("test_")
        for name in globals()
        if name.startswith("test_") and name != "test_every_example_has_a_test"
    }


def test_one_layer():
    losses = run("one_layer")
    assert sum(losses[-4:]) < 0.7 * sum(losses[:4])
