"""The documented command line for several processes, as torch's own launcher reads it."""

import shlex
from pathlib import Path

import pytest
import typer.main
from torch.distributed.run import parse_args

from grit.cli import app

DOCS = Path(__file__).parents[2] / "docs" / "training.md"
COMMANDS = [line for line in DOCS.read_text().splitlines() if line.startswith("torchrun ")]


def test_it_is_documented():
    assert COMMANDS
    assert all("--run" in line for line in COMMANDS), "with a run folder, which is what torchrun mistakes for its own"


@pytest.mark.parametrize("line", COMMANDS)
def test_the_documented_command_reaches_grit(line):
    parsed = parse_args(shlex.split(line)[1:])
    assert (parsed.module, parsed.training_script, parsed.nproc_per_node) == (True, "grit", "2")
    words = parsed.training_script_args
    words = words[1:] if words[0] == "--" else words  # depends on the version of Python
    assert words == shlex.split(line)[shlex.split(line).index("--") + 1 :]
    command = typer.main.get_command(app)
    context = command.commands[words[0]].make_context("grit", words[1:])
    assert str(context.params["run"]) == "runs/zinc"


def test_grit_takes_the_two_dashes_too(capsys):
    command = typer.main.get_command(app)
    command.main(["--", "recipes", "zinc", "model.num_layers=2"], standalone_mode=False)
    assert "num_layers: 2" in capsys.readouterr().out
