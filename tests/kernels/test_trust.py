"""A library that others could have written is not loaded."""

import os
import stat
import tempfile

import pytest

from grit.kernels import build
from grit.kernels.build import KernelsUnavailable
from tests.kernels.machine import UNSAFE, lines, of_another


def places(machine):
    above = machine.temporary.parent / "above"
    above.mkdir(mode=0o700)
    return {"cache": above / "cache", "temporary": above / f"grit-kernels-{os.geteuid()}"}


@pytest.mark.parametrize("place", ["cache", "temporary"])
@pytest.mark.parametrize("unsafe", UNSAFE)
def test_a_library_that_others_could_have_written_is_not_loaded(machine, monkeypatch, capsys, place, unsafe):
    folder = places(machine)[place]
    if place == "cache":
        monkeypatch.setenv("GRIT_KERNEL_CACHE", str(folder))
    else:
        (machine.temporary / "file").write_text("in the way")
        monkeypatch.setenv("GRIT_KERNEL_CACHE", str(machine.temporary / "file" / "cache"))
        monkeypatch.setattr(tempfile, "tempdir", str(folder.parent))
    UNSAFE[unsafe](machine.plant(folder))
    try:
        loaded = build.load_library()
    except KernelsUnavailable as problem:  # the whole temporary folder is unsafe
        assert place == "temporary"
        assert "above" in unsafe
        said = [str(problem)]
    else:
        said = lines(capsys)
        assert loaded.library.grit_abi() == build.ABI
    assert not machine.marker.exists()
    assert len(said) == 1
    assert any(words in said[0] for words in ("so it is not used", "not safe to load")), said


def test_a_library_planted_where_only_we_can_write_is_loaded(machine):
    """The test above is worth something: the library would have run."""
    machine.plant(machine.cache)
    build.load_library()
    assert machine.marker.exists()


def test_a_sticky_folder_above_is_fine(machine, monkeypatch, capsys):
    folder = places(machine)["cache"]
    monkeypatch.setenv("GRIT_KERNEL_CACHE", str(folder))
    folder.parent.chmod(0o1777)
    machine.plant(folder, "good")
    assert build.load_library().file.parent == folder
    assert lines(capsys) == []


def test_a_cache_reached_through_a_link_is_fine(machine, monkeypatch, capsys):
    machine.plant(machine.cache, "good")
    (machine.temporary / "link").symlink_to(machine.cache)
    monkeypatch.setenv("GRIT_KERNEL_CACHE", str(machine.temporary / "link"))
    assert build.load_library().file == machine.file
    assert lines(capsys) == []


def test_where_no_lasting_folder_is_safe_the_process_gets_its_own(machine, capsys):
    for folder in (machine.cache, machine.temporary / f"grit-kernels-{os.geteuid()}"):
        machine.plant(folder)
        folder.chmod(0o777)
    loaded = build.load_library()
    (line,) = lines(capsys)
    assert "(about 15 s, for this process only)" in line
    assert stat.S_IMODE(loaded.file.parent.stat().st_mode) == 0o700
    assert not machine.marker.exists()


def test_nothing_is_made_in_a_folder_of_another_user(machine, monkeypatch):
    folder = machine.temporary / "theirs"
    folder.mkdir()
    of_another(folder)
    monkeypatch.setenv("GRIT_KERNEL_CACHE", str(folder / "cache"))
    build.load_library()
    assert list(folder.iterdir()) == []
