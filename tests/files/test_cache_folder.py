"""Where data and kernels are kept when the environment says nothing, or nonsense."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import grit
from grit.cli.print_doctor import print_report
from grit.datasets import data_root
from grit.kernels.build import cache_folder

KERNELS = cache_folder()  # those that other tests have compiled
FOLDERS = {"data": (data_root, "grit"), "kernels": (cache_folder, "grit/kernels")}


@pytest.fixture
def home(tmp_path, monkeypatch):
    for name in ("GRIT_DATA", "GRIT_KERNEL_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("which", sorted(FOLDERS))
def test_the_users_cache_folder(home, monkeypatch, which):
    folder, name = FOLDERS[which]
    assert folder() == home / ".cache" / name
    for nonsense in ("", "relative", "./here", "~/there"):
        monkeypatch.setenv("XDG_CACHE_HOME", nonsense)
        assert folder() == home / ".cache" / name
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "x"))
    assert folder() == home / "x" / name


def test_named_folders(home, monkeypatch):
    monkeypatch.setenv("GRIT_DATA", "")
    assert data_root() == home / ".cache" / "grit"
    monkeypatch.setenv("GRIT_DATA", "~/mine")
    assert data_root() == home / "mine"
    assert data_root("here") == Path("here")


@pytest.fixture
def homeless(home, monkeypatch):
    pwd = pytest.importorskip("pwd")

    def nobody(number):
        raise KeyError(number)

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    monkeypatch.delenv("HOME")


@pytest.mark.parametrize("value", [None, "", "relative"])
def test_no_home(homeless, monkeypatch, value):
    if value is not None:
        monkeypatch.setenv("HOME", value)
    with pytest.raises(grit.GritError, match="no home folder. Name one with --root, or .* GRIT_DATA"):
        data_root()
    assert data_root("here") == Path("here")
    assert cache_folder().parts[0] == "~"  # which `load_library` passes over


def test_doctor_without_a_home(homeless, monkeypatch, capsys):
    monkeypatch.setenv("GRIT_KERNEL_CACHE", str(KERNELS))
    print_report()
    assert "data: there is no folder for data sets" in capsys.readouterr().out


@pytest.mark.skipif(sys.platform == "win32", reason="needs pwd")
def test_the_command_without_a_home(tmp_path):
    program = (
        "import pwd, sys\n"
        "def nobody(number): raise KeyError(number)\n"
        "pwd.getpwuid = nobody\n"
        "from grit.cli import main\n"
        "sys.argv = ['grit', 'datasets']\n"
        "main()\n"
    )
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH") if name in os.environ}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**kept, "XDG_CACHE_HOME": ""},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: there is no folder for data sets")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
