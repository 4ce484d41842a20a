"""Files that appear whole, and what killed writers leave."""

import errno
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


def as_on_nfs(monkeypatch: pytest.MonkeyPatch) -> None:
    """There only what is open for writing can be locked."""
    fcntl = pytest.importorskip("fcntl")

    def flock(descriptor: int, operation: int, flock=fcntl.flock) -> None:  # type: ignore[no-untyped-def]
        if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, "Bad file descriptor")
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", flock)


def test_what_a_killed_writer_left_goes_on_nfs_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    as_on_nfs(monkeypatch)
    (tmp_path / ".a.txt.0.part").write_text("half")
    write_text(tmp_path / "a.txt", "whole")
    assert [each.name for each in tmp_path.iterdir()] == ["a.txt"]


def test_a_writer_that_is_taken_for_dead_before_it_has_its_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fcntl = pytest.importorskip("fcntl")
    calls: list[int] = []

    def flock(descriptor: int, operation: int, flock=fcntl.flock) -> None:  # type: ignore[no-untyped-def]
        calls.append(descriptor)
        if len(calls) == 1:
            remove_abandoned(tmp_path)  # as another process does at this moment
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    write_text(tmp_path / "a.txt", "whole")
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == {"a.txt": "whole"}


def test_where_there_are_no_locks_files_are_written_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fcntl = pytest.importorskip("fcntl")

    def flock(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)
    write_text(tmp_path / "a.txt", "whole")
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == {"a.txt": "whole"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_four_writers_of_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    children = []
    for _ in range(4):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                for number in range(500):
                    write_text(tmp_path / "a.txt", str(number))
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
    assert [each.name for each in tmp_path.iterdir()] == ["a.txt"]
