"""``grit datasets``: building, verifying, and places where a store cannot be."""

import json
import os
import shutil
import sys

import pytest

from grit.cli import main
from grit.datasets import BuildOptions, build
from tests.graphs.damaged_stores import sample_store


def run(monkeypatch, capsys, *words, code=None):
    """Standard output and error of a command."""
    monkeypatch.setattr(sys, "argv", ["grit", "datasets", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        main()
    shown = capsys.readouterr()
    assert ended.value.code == code, shown.err
    return shown.out if code in (None, 0) else shown.err


@pytest.fixture
def command(monkeypatch, capsys):
    return lambda *words, code=0: run(monkeypatch, capsys, *words, code=code)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("root")
    build("pattern", root=folder, how="generate", options=BuildOptions(processes=1, limit=3))
    return folder


def test_verify(command, root, tmp_path):
    path = root / "stores" / "pattern"
    assert command("verify", "pattern", "--root", root).startswith(f"{path} is sound: 9 graphs, 0.")
    copied = shutil.copytree(path, tmp_path / "copied")
    assert command("verify", copied).startswith(f"{copied} is sound: 9 graphs")
    with (copied / "edge_index.npy").open("r+b") as file:
        file.seek(1000)
        file.write(b"\x07\x07")
    message = command("verify", copied, code=2)
    assert message == (
        f"error: the store {str(copied)!r} is damaged: edge_index.npy has changed since the store was built. "
        "Build it again.\n"
    )
    assert command(copied, code=2).splitlines()[-1] == message.strip()


def test_verify_reads_what_opening_does_not(command, root, tmp_path, monkeypatch):
    """Bits that changed in a large array while its size and time stayed the same."""
    monkeypatch.setattr("grit.graphs.store_check.SMALL", 0)  # so that all arrays count as large
    path = tmp_path / "copied"
    shutil.copytree(root / "stores" / "pattern", path)
    assert command("verify", path).startswith(f"{path} is sound")
    before = (path / "x.npy").stat()
    with (path / "x.npy").open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        last = file.read(1)[0]
        file.seek(-1, os.SEEK_END)
        file.write(bytes([1 - last if last < 2 else 0]))
    os.utime(path / "x.npy", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert "x.npy has changed since the store was built" in command("verify", path, code=2)


def test_what_a_data_set_was_made_of_is_noted(command, root):
    assert "note: drawn from the published distribution" in command("pattern", "--root", root)


def test_verify_says_how_to_build_a_data_set_again(command, tmp_path):
    build("pattern", root=tmp_path, how="generate", options=BuildOptions(processes=1, limit=3))
    os.truncate(tmp_path / "stores" / "pattern" / "y.npy", 130)
    message = command("verify", "pattern", "--root", tmp_path, code=2)
    assert "is damaged: y.npy has 130 bytes, expected" in message
    assert message.endswith("Build it again.\n  grit datasets build pattern --overwrite\n")


def test_what_cannot_be_verified(command, root, tmp_path):
    assert "which one? grit datasets verify NAME" in command("verify", code=2)
    assert "cluster has not been built yet" in command("verify", "cluster", "--root", root, code=2)
    assert "is not a graph store: it has no manifest.json" in command("verify", tmp_path, code=2)
    assert "there is no store at" in command("verify", tmp_path / "absent", code=2)
    assert "unknown data set 'pattrn'" in command("verify", "pattrn", code=2)
    assert "grit datasets verify NAME" in command("verify", "pattern", "cluster", code=2)


def test_stores_of_the_first_version_are_verified_with_a_note(command, tmp_path):
    store = sample_store(tmp_path / "old", "graph")
    manifest = json.loads((store.path / "manifest.json").read_text())
    del manifest["sha256"], manifest["skipped_sha256"]
    (store.path / "manifest.json").write_text(json.dumps({**manifest, "version": 1}))
    assert "Its manifest has no checksum: an older version of grit built it." in command("verify", store.path)


def test_a_store_that_a_killed_build_moved_away_is_listed_and_verified(command, root, tmp_path):
    stores = tmp_path / "stores"
    shutil.copytree(root / "stores" / "pattern", stores / ".pattern.building-0a1b2c3d" / "replaced")
    assert any(line.split()[:2] == ["pattern", "yes"] for line in command("--root", tmp_path).splitlines())
    assert "is sound" in command("verify", "pattern", "--root", tmp_path)


BUILD = ("build", "pattern", "--how", "generate", "--limit", 2, "--processes", 1)


def test_places_where_a_store_cannot_be(command, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    long = tmp_path / ("n" * 300)
    for place in (tmp_path / "file" / "root", long):
        assert "cannot write the store" in command(*BUILD, "--root", place, code=2)
        for words in (("verify", place), (place,)):
            assert "there is no store at" in command(*words, code=2)
        message = command("verify", "pattern", "--root", place, code=2)
        assert "pattern has not been built yet" in message
    assert "unknown data set" in command("n" * 300, code=2)

    def read_only(*arguments, **options):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "mkdir", read_only)
    message = command(*BUILD, "--root", tmp_path, code=2)
    assert "cannot write the store" in message
    assert "Read-only file system" in message
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_disk_that_fills_up_at_the_first_step(command, tmp_path, monkeypatch):
    """Just after the hidden folder of the build was made."""
    (tmp_path / "stores").mkdir()

    def full(path, *arguments, mkdir=os.mkdir, **options):
        if os.path.basename(path) == "store":
            raise OSError(28, "No space left on device")
        mkdir(path, *arguments, **options)

    monkeypatch.setattr(os, "mkdir", full)
    assert "No space left on device" in command(*BUILD, "--root", tmp_path, code=75)
    assert list((tmp_path / "stores").iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize(("count", "limit"), [(200, 0), (2000, 0), (2000, 6_000), (2000, 16_000)])
def test_a_full_disk(tmp_path, count, limit, overwrite):
    """A limit on the size of files fails like a full disk does: in the middle of a write, or when a file is closed."""
    import resource

    path = tmp_path / "s"
    if overwrite:
        sample_store(path, "graph", count=5)
    before = sorted((each, each.read_bytes()) for each in path.rglob("*"))
    child = os.fork()
    if child == 0:
        code = 1
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
            from grit.datasets import from_pyg

            try:
                from_pyg(graphs(count), out=path, overwrite=overwrite)
            except ValueError as error:  # which a GritError is
                code = 0 if str(error).startswith(f"cannot write the store {str(path)!r}: ") else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert sorted((each, each.read_bytes()) for each in path.rglob("*")) == before
    assert [each.name for each in tmp_path.iterdir()] == (["s"] if overwrite else [])


def graphs(count):
    import torch
    from torch_geometric.data import Data

    edges = torch.tensor([[0, 1], [1, 0]])
    return [Data(edge_index=edges, x=torch.tensor([[1.5], [2.5]]), y=torch.tensor([[float(k)]])) for k in range(count)]


def test_the_list_by_its_name(command, root):
    assert command("list", "--root", root) == command("--root", root)
