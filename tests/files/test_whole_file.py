"""Files that appear whole, and what killed writers leave."""

import os
import signal
from pathlib import Path

import pytest

from grit.errors import GritError
from grit.files.whole_file import remove_abandoned, whole_file, write_text


def test_a_file_appears_whole_and_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with whole_file(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]
    assert path.stat().st_mode & 0o777 == 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), whole_file(path) as file:
        file.write(b"ne")
        1 / 0  # noqa: B018
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_what_a_killed_writer_left_goes_and_what_another_writes_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    child = os.fork()
    if child == 0:
        with whole_file(path) as file:
            file.write(b"half")
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    left = [each.name for each in tmp_path.iterdir()]
    assert len(left) == 1
    with whole_file(tmp_path / "a.txt.b") as other:  # a name that begins the same, still being written
        other.write(b"other")
        write_text(path, "whole")
        remove_abandoned(tmp_path)
        assert sum(each.name.endswith(".part") for each in tmp_path.iterdir()) == 1
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == {"a.txt": "whole", "a.txt.b": "other"}


def test_names_of_the_longest_kind_can_be_written_and_longer_ones_are_an_error(tmp_path: Path) -> None:
    write_text(tmp_path / ("n" * 255), "x")
    write_text(tmp_path / ("𝕟" * 63), "x")
    with pytest.raises(GritError, match="cannot write"):
        write_text(tmp_path / ("n" * 256), "x")
    assert len(list(tmp_path.iterdir())) == 2


def test_the_old_file_is_kept_also_where_it_was_kept_already(tmp_path: Path) -> None:
    path, old = tmp_path / "a", tmp_path / "old"
    path.write_text("1")
    os.link(path, old)  # as after a kill between keeping the old file and putting the new one in place
    with whole_file(path, keep_old=old) as file:
        file.write(b"2")
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == {"a": "2", "old": "1"}
