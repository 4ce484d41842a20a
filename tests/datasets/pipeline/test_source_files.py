import io
import pickle
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import grit
from grit.datasets.pipeline.download import fetch
from grit.datasets.pipeline.source_files import (
    SourceFile,
    checksum,
    data_root,
    extract,
    read_member,
    read_pickle,
    unpickle,
)


def test_where_data_is_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("GRIT_DATA", str(tmp_path / "a"))
    assert data_root() == tmp_path / "a"
    assert data_root(tmp_path / "b") == tmp_path / "b"
    monkeypatch.delenv("GRIT_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert data_root() == tmp_path / "grit"


def served(tmp_path, content=b"hello"):
    """An official file, served from disk."""
    source = tmp_path / "server" / "file.txt"
    source.parent.mkdir(exist_ok=True)
    source.write_bytes(content)
    return source.as_uri()


def test_downloads_verifies_and_keeps(tmp_path):
    url = served(tmp_path)
    file = SourceFile("file.txt", url, md5="5d41402abc4b2a76b9719d911017c592")
    steps = []
    path = fetch(file, tmp_path / "here", progress=lambda done, total: steps.append((done, total)))
    assert path.read_bytes() == b"hello"
    assert steps == [(5, 5)]
    (tmp_path / "server" / "file.txt").unlink()
    assert fetch(file, tmp_path / "here") == path  # no second download
    assert [each.name for each in path.parent.iterdir()] == ["file.txt"]


def test_a_wrong_checksum_leaves_nothing(tmp_path):
    url = served(tmp_path, b"something else")
    for sums in ({"md5": "5d41402abc4b2a76b9719d911017c592"}, {"sha256": "00"}):
        with pytest.raises(grit.GritError, match=r"not the official file.txt: its \w+ is \w+, expected"):
            fetch(SourceFile("file.txt", url, **sums), tmp_path / "here")
        assert list((tmp_path / "here").iterdir()) == []


def test_a_file_that_was_put_there_is_verified(tmp_path):
    (tmp_path / "file.txt").write_bytes(b"wrong")
    with pytest.raises(grit.GritError, match="Delete it and download it again"):
        fetch(SourceFile("file.txt", "nowhere:", sha256="00"), tmp_path)


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/file.txt", "file:///does/not/exist", "nonsense"])
def test_without_a_network(tmp_path, url):
    with pytest.raises(grit.GritError) as error:
        fetch(SourceFile("file.txt", url), tmp_path / "here", timeout=2)
    message = str(error.value)
    assert url in message
    assert str(tmp_path / "here" / "file.txt") in message
    assert "--from" in message
    assert list((tmp_path / "here").iterdir()) == []


def test_no_address(tmp_path):
    with pytest.raises(grit.GritError, match="has no official address; put it into"):
        fetch(SourceFile("mine.csv"), tmp_path)


def test_checksums(tmp_path):
    (tmp_path / "f").write_bytes(b"hello")
    assert checksum(tmp_path / "f", "md5") == "5d41402abc4b2a76b9719d911017c592"
    with pytest.raises(grit.GritError, match="cannot read"):
        checksum(tmp_path / "absent", "md5")


def make_zip(path, members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def make_tar(path, members):
    with tarfile.open(path, "w:gz") as archive:
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return path


@pytest.mark.parametrize("make", [make_zip, make_tar])
def test_members(make, tmp_path):
    archive = make(tmp_path / "a", {"deep/inside/data.bin": b"123", "other.bin": b"4"})
    assert read_member(archive, "data.bin") == b"123"
    assert read_member(archive, "other.bin") == b"4"
    with pytest.raises(grit.GritError, match="has no ata.bin"):
        read_member(archive, "ata.bin")
    extract(archive, tmp_path / "out")
    assert (tmp_path / "out" / "deep" / "inside" / "data.bin").read_bytes() == b"123"


@pytest.mark.parametrize("make", [make_zip, make_tar])
@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "/etc/evil"])
def test_archives_stay_in_their_folder(make, name, tmp_path):
    archive = make(tmp_path / "a", {"fine": b"1", name: b"2"})
    with pytest.raises(grit.GritError, match="would land outside its folder"):
        extract(archive, tmp_path / "out")
    assert not (tmp_path / "evil").exists()


def test_links_in_archives_are_refused(tmp_path):
    with tarfile.open(tmp_path / "a", "w:gz") as archive:
        entry = tarfile.TarInfo("link")
        entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(entry)
    with pytest.raises(grit.GritError, match="'link', which is not an ordinary file"):
        extract(tmp_path / "a", tmp_path / "out")


ARRAYS = {"train": np.arange(5), "x": [torch.tensor([1.5, 2.0]), {"n": 3, "s": "text"}], "f": np.float32(2.5)}


def same(a, b):
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    return bool(np.all(a == b))


def test_pickles_of_arrays():
    assert same(unpickle(pickle.dumps(ARRAYS), "here"), ARRAYS)
    old_name = pickle.dumps(ARRAYS, protocol=2).replace(b"numpy._core.multiarray", b"numpy.core.multiarray")
    assert same(unpickle(old_name, "here"), ARRAYS)


class Evil:
    def __init__(self, *call):
        self.call = call

    def __reduce__(self):
        return self.call[0], self.call[1:]


@pytest.mark.parametrize(
    "call",
    [
        (eval, "1/0"),
        (exec, "raise SystemExit"),
        (getattr, "x", "upper"),
        (Path, "/tmp"),
        (__import__, "os"),
        (torch.load, "/tmp/x"),
    ],
)
def test_pickles_that_run_code_are_refused(call):
    with pytest.raises(grit.GritError, match="which is neither array nor tensor"):
        unpickle(pickle.dumps([Evil(*call)]), "here")


def test_code_inside_a_tensors_storage_is_refused():
    inner = io.BytesIO()
    torch.save(Evil(eval, "1/0"), inner)
    with pytest.raises(grit.GritError, match="cannot be read as a pickle of arrays"):
        unpickle(pickle.dumps(Evil(torch.storage._load_from_bytes, inner.getvalue())), "here")


def test_a_pickle_needs_its_checksum(tmp_path):
    path = tmp_path / "p"
    path.write_bytes(pickle.dumps(ARRAYS))
    with pytest.raises(grit.GritError, match="no checksum of it is known"):
        read_pickle(path, SourceFile("p"))
    with pytest.raises(grit.GritError, match="not the official p"):
        read_pickle(path, SourceFile("p", md5="00"))
    assert same(read_pickle(path, SourceFile("p", md5=checksum(path, "md5"))), ARRAYS)


@given(st.data())
def test_fuzz_pickles(data):
    content = bytearray(pickle.dumps(ARRAYS))
    if data.draw(st.booleans()):
        content = bytearray(data.draw(st.binary(max_size=100)))
    for _ in range(data.draw(st.integers(0, 4))):
        if content:
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        unpickle(bytes(content), "here")
    except grit.GritError:
        pass


@given(st.data(), st.sampled_from([make_zip, make_tar]))
def test_fuzz_archives(tmp_path_factory, data, make):
    folder = tmp_path_factory.mktemp("fuzz")
    path = make(folder / "a", {"inside/data.bin": bytes(range(256)) * 4, "b": b"1"})
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        content = bytearray(data.draw(st.binary(max_size=100)))
    for _ in range(data.draw(st.integers(0, 6))):
        if content:
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(bytes(content))
    for use in (lambda: read_member(path, "data.bin"), lambda: extract(path, folder / "out")):
        try:
            use()
        except grit.GritError:
            pass
