"""A process killed before any of its file operations loses nothing; see `tests.crash.points`."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.crash.points import SCENARIOS

ROOT = Path(__file__).parents[2]
needs_c = pytest.mark.skipif(
    not (sys.platform == "linux" and shutil.which("cc")), reason="needs Linux and a C compiler"
)


@pytest.fixture(scope="session")
def operations(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("operations") / "operations.so"
    source = Path(__file__).with_name("operations.c")
    subprocess.run(["cc", "-Wall", "-Werror", "-O1", "-shared", "-fPIC", source, "-o", library, "-ldl"], check=True)
    return library


def crash(*arguments: object, **environment: str) -> dict[str, int]:
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        **environment,
    }
    command = [sys.executable, "-m", "tests.crash.points", *map(str, arguments)]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    print(arguments, found)
    assert found["problems"] == [], done.stderr[-3000:]
    return found


@needs_c
@pytest.mark.parametrize(
    ("scenario", "every"), [("train", 17), ("init", 17), ("fit", 19), ("build", 13), ("rebuild", 7)]
)
def test_killed_before_some_file_operations(operations: Path, scenario: str, every: int) -> None:
    found = crash(scenario, "--every", every, LD_PRELOAD=str(operations))
    assert found["operations"] > 40
    assert found["tried"] >= 4


@needs_c
@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_killed_before_every_file_operation(operations: Path, scenario: str) -> None:
    found = crash(scenario, "--every", 1, LD_PRELOAD=str(operations))
    assert found["tried"] == found["operations"]


def test_killed_at_random_moments() -> None:
    assert crash("train", "--random", 4)["tried"] == 4


@pytest.mark.slow
@pytest.mark.parametrize(("scenario", "kills"), [("train", 100), ("fit", 20), ("rebuild", 20)])
def test_killed_at_many_random_moments(scenario: str, kills: int) -> None:
    assert crash(scenario, "--random", kills, "--seed", 1)["tried"] == kills
