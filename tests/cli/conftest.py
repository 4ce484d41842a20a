import sys

import pytest

from grit.cli import main


@pytest.fixture
def command(monkeypatch, capsys):
    """``command("recipes", "zinc", code=0)``: a call of grit in this process; what it printed, or its error message."""

    def call(*arguments, code=0):
        monkeypatch.setattr(sys, "argv", ["grit", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        assert ended.value.code == code, said.err
        return said.err if code else said.out

    return call
