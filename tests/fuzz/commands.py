"""Whole commands with odd words and paths: exit code 0 or 2 (or 75 for the machine's), and one message.

Every path is inside the folder of the input: a command may be run by root, and would then write wherever it is told to.
"""

import io
import os
import shutil
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
    ["train", "PATH", "--run", "PATH", "--root", "PATH", *scene.SMALL],
    ["train", "zinc-mini", "dataset=STORE", "--run", "PATH", "OVERRIDE", *scene.SMALL],
    ["train", "zinc-mini", "--resume", "--run", "PATH", "dataset=PATH", *scene.SMALL],
    ["train", "PATH", "--resume", *scene.SMALL],
    ["train", "zinc", "--seeds", "TEXT"],
    [
        "fit",
        "TABLE",
        "--target",
        "y",
        "--run",
        "PATH",
        "--no-forest",
        "--split",
        "random",
        "--device",
        "TEXT",
        *scene.SMALL,
    ],
    ["fit", "PATH", "--target", "y", "--run", "PATH", *scene.SMALL],
    ["fit", "TABLE", "--target", "TEXT", "--split", "PATH", *scene.SMALL],
    ["fit", "TABLE", "--target", "y", "--preset", "TEXT", "--seed", "TEXT", *scene.SMALL],
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
    *[text for text in TEXTS if "/" not in text],  # no way out of the folder
]
ENVIRONMENTS: list[dict[str, str]] = [
    {},
    {},
    {},
    {"HOME": "absent"},
    {"HOME": "file"},
    {"HOME": ""},
    {"GRIT_DATA": "file"},
    {"GRIT_DATA": ""},
    {"GRIT_DATA": "closed"},
    {"COLUMNS": "1"},
    {"COLUMNS": "x"},
    {"GRIT_KERNELS": "nonsense"},
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
    for name in ("run", "store", "table.csv"):
        source = scene.folder() / name
        (shutil.copytree if source.is_dir() else shutil.copyfile)(source, folder / name)
    scene.good_predictions()  # kernels are there before HOME is elsewhere
    words = value["words"]
    for name, place in (("RUN", "run"), ("STORE", "store"), ("TABLE", "table.csv")):
        words = [word.replace(name, place) for word in words]
    before, argv = dict(os.environ), sys.argv
    os.environ.update({"GRIT_DATA": "data", "HOME": "home", **value["environment"]})
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
