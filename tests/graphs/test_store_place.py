"""Whenever a build is killed there is a store in its place, the old one or the new one, and the next build clears up."""

import errno
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

import grit
from grit.graphs import store_check
from grit.graphs.chunk import ArrayGraph, GraphChunk
from grit.graphs.schema import Features, GraphSchema, TaskSpec
from grit.graphs.store import GraphStore
from grit.graphs.store_format import read_manifest
from grit.graphs.store_writer import StoreWriter
from tests.files.test_whole_file import as_on_nfs

SCHEMA = GraphSchema(node=Features(kind="category", sizes=(9,)), edge=Features(kind="none"))
TASK = TaskSpec(kind="regression", targets=("y",), loss="l1", metric="mae")
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
needs_locks = pytest.mark.skipif(sys.platform == "win32", reason="needs fcntl")


def writer_of(path, overwrite=False):
    return StoreWriter(path, name="toy", graphs=SCHEMA, task=TASK, source="here", overwrite=overwrite)


def chunk(value):
    """Three graphs of ``value`` nodes, everything in them ``value``."""
    edges = np.zeros((2, 1), dtype=np.int64)
    graph = ArrayGraph(np.full((value, 1), value), edges, np.zeros((1, 0)), np.array([[float(value)]]))
    return GraphChunk.of([graph] * 3)


def write(path, value, overwrite=False):
    with writer_of(path, overwrite) as writer:
        writer.append(chunk(value))
        writer.finish({"train": np.arange(3)})


def value_of(path):
    """What a store was written with; everything in it must agree."""
    store = GraphStore.open(path)
    graphs = store.gather([0, 1, 2])
    values = {*graphs.x[:, 0].tolist(), *graphs.y[:, 0].tolist(), *graphs.nodes_per_graph.tolist()}
    assert len(values) == 1, values
    return int(values.pop())


def child(action):
    """Run an action in a forked process; its process number."""
    number = os.fork()
    if number == 0:
        code = 1
        try:
            action()
            code = 0
        finally:
            os._exit(code)
    return number


def kill_at(step, after):
    """Make this process end by SIGKILL at the ``step``-th change of the file system, before or after it is done."""
    left = [step]

    def dying(function):
        def call(*arguments, **options):
            left[0] -= 1
            if left[0] == 0 and not after:
                os.kill(os.getpid(), signal.SIGKILL)
            try:
                return function(*arguments, **options)
            finally:
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        return call

    for name in ("rename", "replace", "unlink", "rmdir", "mkdir", "fsync"):
        setattr(os, name, dying(getattr(os, name)))


@needs_fork
@pytest.mark.parametrize("after", [False, True])
def test_a_build_that_is_killed_anywhere(tmp_path, monkeypatch, after):
    """Also between the renames: the old store is never gone before the new one is there, or can be had back."""
    monkeypatch.setattr(
        os, "fsync", lambda descriptor: None
    )  # a kill is no power failure, and this is a hundred builds
    seen = []
    for step in range(1, 1000):
        path = tmp_path / str(step) / "s"
        write(path, 2)

        def build(path=path, step=step):
            kill_at(step, after)
            write(path, 3, overwrite=True)

        _, status = os.waitpid(child(build), 0)
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0
            break
        if step % 2:  # whether it is opened next, or built
            seen.append(value_of(path))
        write(path, 4, overwrite=True)
        assert value_of(path) == 4
        assert [each.name for each in path.parent.iterdir()] == ["s"]
        shutil.rmtree(path.parent)
    assert len(seen) > 10
    assert sorted(seen) == seen  # first the old one, then the new one
    assert set(seen) == {2, 3}


@needs_fork
def test_a_killed_first_build_leaves_no_store(tmp_path):
    path = tmp_path / "s"

    def build():
        kill_at(12, after=True)
        write(path, 3)

    os.waitpid(child(build), 0)
    assert [each.name.startswith(".s.building-") for each in tmp_path.iterdir()] == [True]
    with pytest.raises(grit.GritError, match="is not a graph store: there is no such folder"):
        GraphStore.open(path)
    assert list(tmp_path.iterdir()) == []


def wait_for(path):
    for _ in range(3000):
        if path.exists():
            return
        time.sleep(0.02)
    raise AssertionError(f"{path} did not appear")


@needs_fork
@needs_locks
def test_a_running_build_is_left_alone(tmp_path, monkeypatch):
    """Also where its process number says nothing, because it runs in another container."""
    path, ready, go = tmp_path / "s", tmp_path / "ready", tmp_path / "go"

    def build():
        with writer_of(path, overwrite=True) as writer:
            writer.append(chunk(3))
            ready.touch()
            wait_for(go)
            writer.finish({"train": np.arange(3)})

    number = child(build)
    wait_for(ready)

    def no_such_process(process, signal):
        raise ProcessLookupError

    with monkeypatch.context() as context:
        context.setattr(os, "kill", no_such_process)
        write(path, 2)
    assert value_of(path) == 2
    go.touch()
    assert os.waitpid(number, 0)[1] == 0
    assert value_of(path) == 3
    assert sorted(each.name for each in tmp_path.iterdir()) == ["go", "ready", "s"]


@needs_fork
@needs_locks
def test_a_worker_that_outlives_its_build_does_not_keep_the_folder(tmp_path):
    path, worker = tmp_path / "s", tmp_path / "worker"

    def build():
        with writer_of(path) as writer:
            writer.append(chunk(3))
            number = child(lambda: time.sleep(600))
            worker.with_suffix(".new").write_text(str(number))
            os.rename(worker.with_suffix(".new"), worker)
            os.kill(os.getpid(), signal.SIGKILL)

    os.waitpid(child(build), 0)
    try:
        write(path, 2)
        assert sorted(each.name for each in tmp_path.iterdir()) == ["s", "worker"]
    finally:
        os.kill(int(worker.read_text()), signal.SIGKILL)


@needs_fork
def test_a_store_can_be_opened_at_every_moment_of_being_replaced(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    path, done = tmp_path / "s", tmp_path / "done"
    write(path, 2)

    def build():
        try:
            for number in range(40):
                write(path, 3 + number % 2, overwrite=True)
        finally:
            done.touch()

    number = child(build)
    openings = 0
    while not done.exists():
        assert value_of(path) in (2, 3, 4)
        openings += 1
    assert os.waitpid(number, 0)[1] == 0
    assert openings


@needs_fork
@needs_locks
def test_opening_between_the_two_renames_waits(tmp_path):
    path, between = tmp_path / "s", tmp_path / "between"
    write(path, 2)

    def build():
        def slow(source, target, rename=os.rename):
            if Path(source).name == "store" and not path.exists():
                between.touch()
                time.sleep(0.2)
            rename(source, target)

        os.rename = slow
        write(path, 3, overwrite=True)

    number = child(build)
    wait_for(between)
    assert value_of(path) == 3
    assert os.waitpid(number, 0)[1] == 0


def test_a_store_is_never_half_of_one_and_half_of_another(tmp_path, monkeypatch):
    """Replaced just after its manifest was read, by one whose files are as long."""
    monkeypatch.setattr(store_check, "SMALL", 0)  # as in a large store, whose arrays are not read on opening

    def build(number):
        x = np.full((4, 1), number)
        graph = ArrayGraph(x, np.zeros((2, 1), dtype=np.int64), np.zeros((1, 0)), np.array([[0.0]]))
        with StoreWriter(
            tmp_path / "s", name=str(number), graphs=SCHEMA, task=TASK, source="", overwrite=True
        ) as writer:
            writer.append(GraphChunk.of([graph]))
            writer.finish({})

    def read(folder):
        manifest = read_manifest(folder)
        if manifest.name == "2":
            build(3)
        return manifest

    build(2)
    monkeypatch.setattr("grit.graphs.store.read_manifest", read)
    store = GraphStore.open(tmp_path / "s")
    assert {store.name, *map(str, store.array("x")[:, 0])} == {"3"}


def replaced_at_every_reading(path, monkeypatch, times):
    """From now on the store at ``path`` is replaced just after its manifest was read, the first ``times`` times."""
    left = [times]

    def read(folder):
        manifest = read_manifest(folder)
        if left[0] > 0:
            left[0] -= 1
            write(path, 3, overwrite=True)
        return manifest

    monkeypatch.setattr("grit.graphs.store.read_manifest", read)


def test_a_store_that_is_replaced_many_times_in_a_row_is_opened_in_the_end(tmp_path, monkeypatch):
    write(tmp_path / "s", 2)
    replaced_at_every_reading(tmp_path / "s", monkeypatch, times=15)
    assert value_of(tmp_path / "s") == 3


def test_a_store_that_is_replaced_for_ever_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr("grit.graphs.store.KEEP_TRYING_SECONDS", 0)
    write(tmp_path / "s", 2)
    replaced_at_every_reading(tmp_path / "s", monkeypatch, times=1000)
    with pytest.raises(grit.GritError, match="is being replaced again and again"):
        GraphStore.open(tmp_path / "s")


def test_where_there_are_no_locks_the_old_store_is_not_lost(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")

    def flock(descriptor, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    path, aside = tmp_path / "s", tmp_path / ".s.building-0" / "replaced"
    write(path, 2)
    write(path, 3, overwrite=True)
    assert [each.name for each in tmp_path.iterdir()] == ["s"]
    aside.parent.mkdir()
    os.rename(path, aside)
    with pytest.raises(grit.GritError, match=f"is missing: a build moved it to '{aside}'.* move it back"):
        GraphStore.open(path)
    assert value_of(aside) == 3


@needs_fork
@needs_locks
def test_a_build_that_was_killed_between_the_renames_on_nfs(tmp_path, monkeypatch):
    """There only files that are open for writing can be locked, and no folders."""
    as_on_nfs(monkeypatch)
    path = tmp_path / "s"
    write(path, 2)

    def build():
        def dying(source, target, rename=os.rename):
            if Path(source).name == "store" and not path.exists():
                os.kill(os.getpid(), signal.SIGKILL)
            rename(source, target)

        os.rename = dying
        write(path, 3, overwrite=True)

    os.waitpid(child(build), 0)
    assert not path.exists()
    assert value_of(path) == 2
    assert [each.name for each in tmp_path.iterdir()] == ["s"]


@needs_fork
def test_an_old_store_that_is_half_removed_does_not_come_back(tmp_path):
    path = tmp_path / "s"
    write(path, 2)

    def build():
        removed = []

        def dying(name, *arguments, unlink=os.unlink, **options):
            removed.append(name)
            if len([each for each in removed if str(each).endswith(".npy")]) == 2:
                os.kill(os.getpid(), signal.SIGKILL)
            unlink(name, *arguments, **options)

        os.unlink = dying
        write(path, 3, overwrite=True)

    os.waitpid(child(build), 0)
    assert value_of(path) == 3
    shutil.rmtree(path)
    with pytest.raises(grit.GritError, match="is not a graph store: there is no such folder"):
        GraphStore.open(path)
    assert list(tmp_path.iterdir()) == []


@needs_fork
def test_builds_of_one_store_at_once(tmp_path):
    """The last one stays; one that may not overwrite says so."""
    path = tmp_path / "s"
    numbers = [child(lambda value=value: write(path, value, overwrite=True)) for value in (2, 3, 4)]
    assert [os.waitpid(number, 0)[1] for number in numbers] == [0, 0, 0]
    assert value_of(path) in (2, 3, 4)
    assert [each.name for each in tmp_path.iterdir()] == ["s"]
    other = tmp_path / "t"
    with pytest.raises(grit.GritError, match="exists already"), writer_of(other) as writer:
        writer.append(chunk(3))
        write(other, 2)
        writer.finish({})
    assert value_of(other) == 2


@pytest.mark.parametrize("number", [1, 2])
def test_a_rename_that_fails_leaves_the_old_store(tmp_path, monkeypatch, number):
    path = tmp_path / "s"
    write(path, 2)
    calls = []

    def failing(source, target, rename=os.rename):
        calls.append(target)
        if Path(source).name == "store" and len(calls) > number:
            raise OSError(errno.EIO, "Input/output error")
        rename(source, target)

    monkeypatch.setattr(os, "rename", failing)
    with pytest.raises(grit.GritError, match="cannot write the store .*Input/output error"):
        write(path, 3, overwrite=True)
    assert value_of(path) == 2
    assert [each.name for each in tmp_path.iterdir()] == ["s"]


def test_everything_is_on_disk_before_the_rename(tmp_path, monkeypatch):
    synced, renamed = set(), []

    def sync(descriptor, fsync=os.fsync):
        synced.add(os.fstat(descriptor).st_ino)
        fsync(descriptor)

    def rename(source, target, rename=os.rename):
        if Path(target) == tmp_path / "s":
            renamed.extend([source, *(each for each in Path(source).iterdir() if each.name != "verified.json")])
            assert {each.name for each in renamed if each.stat().st_ino not in synced} == set()
            synced.clear()
        rename(source, target)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "rename", rename)
    write(tmp_path / "s", 2)
    assert len(renamed) > 8
    assert tmp_path.stat().st_ino in synced


def test_what_an_older_version_left(tmp_path):
    path = tmp_path / "s"
    write(path, 2)
    (tmp_path / ".s.building-999999-old-abcd").mkdir()
    os.rename(path, tmp_path / ".s.building-999999-old-abcd" / "replaced")
    (tmp_path / ".s.building-999999-xyz").mkdir()
    assert value_of(path) == 2
    assert [each.name for each in tmp_path.iterdir()] == ["s"]


def test_stores_with_names_that_begin_the_same(tmp_path):
    """What one left is not taken for the other's."""
    names = ["a", "a.building-b", "n" * 240 + "1", "n" * 240 + "2", "ü" * 120]
    for value, name in enumerate(names, 1):
        write(tmp_path / name, value)
        write(tmp_path / name, value, overwrite=True)
        aside = tempfile.mkdtemp(dir=tmp_path)
        os.rename(tmp_path / name, Path(aside) / "replaced")
        before = set(os.listdir(tmp_path))
        with writer_of(tmp_path / name):  # to learn the name of its hidden folder
            (hidden,) = set(os.listdir(tmp_path)) - before
        os.rename(aside, tmp_path / hidden)
    for value, name in enumerate(names, 1):
        assert value_of(tmp_path / name) == value
    assert len(list(tmp_path.iterdir())) == len(names)


@pytest.mark.parametrize("make", [lambda path: path.write_text("x"), lambda path: (path / "my").mkdir(parents=True)])
def test_only_a_store_is_overwritten(tmp_path, make):
    make(tmp_path / "s")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(grit.GritError, match="is not a graph store, so it is not replaced|cannot replace"):
        write(tmp_path / "s", 2, overwrite=True)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_link_to_a_store_is_replaced_and_not_what_it_points_to(tmp_path):
    write(tmp_path / "far" / "s", 2)
    (tmp_path / "s").symlink_to(tmp_path / "far" / "s")
    write(tmp_path / "s", 3, overwrite=True)
    assert (value_of(tmp_path / "s"), value_of(tmp_path / "far" / "s")) == (3, 2)


def test_others_can_read_what_was_built(tmp_path):
    mask = os.umask(0o022)
    try:
        write(tmp_path / "s", 2)
    finally:
        os.umask(mask)
    assert (tmp_path / "s").stat().st_mode & 0o777 == 0o755
