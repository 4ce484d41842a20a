"""Whole commands with odd words and paths: exit code 0 or 2 (or 75 for the machine's), and one message."""

import io
import os
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from random import Random
from typing import Any

from grit.cli import main
from grit.errors import GritError
from tests.fuzz import overrides, scene
from tests.fuzz.mutation import TEXTS

PATHS = [
    "RUN",
    "STORE",
    "TABLE",
    "absent",
    "",
    ".",
    "..",
    "/",
    "/dev/null",
    "/dev/full",
    "a" * 300,
    "file",
    "file/x",
    "\udcff",
    "é",
    "loop",
    "fifo",
    "-",
    "--",
    "zinc-mini",
    "zinc",
    "RUN/checkpoints/best.safetensors",
    "RUN/config.yaml",
    "RUN/..",
    "closed",
    "closed/x",
]
COMMANDS = [
    ["recipes", "PATH"],
    ["recipes", "zinc", "OVERRIDE"],
    ["recipes", "zinc-mini", "OVERRIDE", "OVERRIDE"],
    ["train", "PATH", "--run", "PATH", "--root", "PATH", "train.epochs=1"],
    ["train", "zinc-mini", "dataset=STORE", "--run", "PATH", "OVERRIDE", *scene.SMALL],
    ["train", "zinc-mini", "--resume", "--run", "PATH", "dataset=PATH"],
    ["train", "PATH", "--resume"],
    ["train", "zinc", "--seeds", "TEXT"],
    ["fit", "TABLE", "--target", "y", "--run", "PATH", "--no-forest", "--split", "random", "--device", "TEXT"],
    ["fit", "PATH", "--target", "y", "--run", "PATH"],
    ["fit", "TABLE", "--target", "TEXT", "--split", "PATH"],
    ["fit", "TABLE", "--target", "y", "--preset", "TEXT", "--seed", "TEXT"],
    ["evaluate", "PATH", "--split", "TEXT", "--data", "PATH"],
    ["evaluate", "RUN", "--data", "PATH"],
    ["evaluate", "RUN", "--split", "TEXT"],
    ["predict", "RUN", "PATH", "-o", "PATH", "--processes", "1"],
    ["predict", "RUN", "TABLE", "-o", "PATH", "--processes", "1"],
    ["predict", "PATH", "TABLE", "-o", "out.csv", "--smiles", "TEXT"],
    ["export", "PATH", "-o", "PATH"],
    ["plot", "rrwp", "TEXT", "-o", "PATH"],
    ["plot", "rrwp", "PATH", "-o", "x.svg", "--steps", "TEXT"],
    ["plot", "attention", "PATH", "TEXT", "-o", "PATH"],
    ["datasets", "PATH", "--root", "PATH"],
    ["datasets", "build", "PATH", "--from", "PATH", "--root", "PATH"],
    ["datasets", "--root", "PATH"],
    ["reproduce", "TEXT", "TEXT", "--budget", "TEXT", "--run", "PATH"],
    ["doctor", "TEXT"],
    ["TEXT"],
    [],
]
TEXT = [
    "",
    "CCO",
    "C(",
    "0",
    "1",
    "-1",
    "1e9",
    "9" * 30,
    "0,1",
    "cpu",
    "cuda",
    "banana",
    "y",
    "smiles",
    "test",
    "train",
    "random",
    "fast",
    "scaffold",
    "--help",
    "-o",
    *TEXTS,
]
ENVIRONMENTS: list[dict[str, str | None]] = [
    {},
    {},
    {},
    {"HOME": None},
    {"HOME": "/nonexistent"},
    {"GRIT_DATA": "/dev/null"},
    {"GRIT_DATA": ""},
    {"COLUMNS": "1"},
    {"COLUMNS": "x"},
    {"GRIT_KERNELS": "nonsense"},
    {"GRIT_DATA": "closed"},
]


def make_input(rng: Random) -> dict[str, Any]:
    """The words of a command line, and changes of the environment."""
    words = [
        {
            "PATH": lambda: rng.choice(PATHS),
            "TEXT": lambda: rng.choice(TEXT),
            "OVERRIDE": lambda: overrides.make_input(rng)[0],
        }.get(word, lambda word=word: word.replace("PATH", rng.choice(PATHS)))()
        for word in rng.choice(COMMANDS)
    ]
    if rng.random() < 0.1:
        words.insert(rng.randint(0, len(words)), rng.choice(TEXT))
    return {"words": words, "environment": rng.choice(ENVIRONMENTS)}


def try_it(value: dict[str, Any], folder: Path) -> None:
    """Run it in a folder with odd things in it."""
    (folder / "file").write_text("x")
    (folder / "loop").symlink_to("loop")
    os.mkfifo(folder / "fifo")
    (folder / "closed").mkdir(mode=0o500)
    places = {
        name: str(scene.folder() / place)
        for name, place in (("RUN", "run"), ("STORE", "store"), ("TABLE", "table.csv"))
    }
    words = []
    for word in value["words"]:
        for name, place in places.items():
            word = word.replace(name, place)
        words.append(word)
    before, argv = dict(os.environ), sys.argv
    os.environ.pop("GRIT_DATA", None)
    for name, text in {"GRIT_DATA": str(folder / "data"), **value["environment"]}.items():
        os.environ.pop(name, None) if text is None else os.environ.__setitem__(name, text)
    out, err = io.StringIO(), io.StringIO()
    sys.argv = ["grit", *words]
    try:
        with chdir(folder), redirect_stdout(out), redirect_stderr(err):
            main()
    except SystemExit as end:
        code = end.code
    finally:
        sys.argv = argv
        os.environ.clear()
        os.environ.update(before)
        (folder / "closed").chmod(0o700)
    said = err.getvalue()
    assert "Traceback" not in said, said
    assert "internal error" not in said, said
    assert code in (0, 2, 75), f"exit code {code}: {said}"
    if code:
        assert said or out.getvalue(), "no message"
        raise GritError(said or "help")
