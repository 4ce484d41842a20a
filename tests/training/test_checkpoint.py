import random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file

import grit
from grit.training.checkpoint import previous, read_checkpoint, read_last, rng_tensors, set_rng, write_checkpoint

TENSORS = {"a": torch.arange(6.0).view(2, 3), "b.c": torch.tensor(3), "empty": torch.zeros(0)}
STATE = {"epoch": 3, "value": 0.1 + 0.2, "nan": float("inf"), "list": [1, None, "x"]}


def test_round_trip(tmp_path):
    write_checkpoint(tmp_path / "c" / "last.safetensors", TENSORS, STATE)
    found = read_checkpoint(tmp_path / "c" / "last.safetensors")
    assert found.state == STATE
    assert all(torch.equal(found.tensors[name], value) for name, value in TENSORS.items())
    assert set(found.under("b.")) == {"c"}
    assert [path.name for path in (tmp_path / "c").iterdir()] == ["last.safetensors"]


def test_the_one_before_is_kept_and_used(tmp_path):
    path = tmp_path / "last.safetensors"
    write_checkpoint(path, TENSORS, {"n": 1}, keep_previous=True)
    assert not previous(path).exists()
    write_checkpoint(path, TENSORS, {"n": 2}, keep_previous=True)
    assert read_checkpoint(previous(path)).state == {"n": 1}
    assert read_last(path)[0].state == {"n": 2}
    path.write_bytes(path.read_bytes()[:-5])
    found, note = read_last(path)
    assert found.state == {"n": 1}
    assert "The one before is used" in note
    previous(path).unlink()
    with pytest.raises(grit.GritError, match="cannot be read"):
        read_last(path)


def test_a_flipped_bit(tmp_path):
    path = tmp_path / "c.safetensors"
    write_checkpoint(path, TENSORS, STATE)
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(grit.GritError, match="damaged: its checksum does not match"):
        read_checkpoint(path)


def test_other_files(tmp_path):
    save_file(TENSORS, tmp_path / "foreign.safetensors")
    with pytest.raises(grit.GritError, match="not a checkpoint of grit"):
        read_checkpoint(tmp_path / "foreign.safetensors")
    save_file(TENSORS, tmp_path / "newer.safetensors", {"format": "grit-checkpoint", "version": "9"})
    with pytest.raises(grit.GritError, match="format version 9, this grit reads 1"):
        read_checkpoint(tmp_path / "newer.safetensors")
    with pytest.raises(grit.GritError, match="cannot be read"):
        read_checkpoint(tmp_path / "absent.safetensors")


def test_a_disk_that_is_full(tmp_path, monkeypatch):
    path = tmp_path / "last.safetensors"
    write_checkpoint(path, TENSORS, {"n": 1}, keep_previous=True)
    monkeypatch.setattr("os.fsync", lambda number: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(grit.GritError, match="No space left on device. The one before is kept; make room and resume"):
        write_checkpoint(path, TENSORS, {"n": 2}, keep_previous=True)
    assert read_checkpoint(path).state == {"n": 1}
    assert [each.name for each in tmp_path.iterdir()] == ["last.safetensors"]


@given(st.data())
def test_fuzz(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "fuzz.safetensors"
    write_checkpoint(path, TENSORS, STATE)
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content)))]
    for _ in range(data.draw(st.integers(0, 5))):
        if content:
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(bytes(content))
    try:
        read_checkpoint(path)
    except grit.GritError:
        pass


def test_random_numbers_go_on_where_they_were():
    random.seed(1)
    np.random.seed(2)  # noqa: NPY002
    torch.manual_seed(3)
    random.gauss(0, 1)
    np.random.standard_normal()  # noqa: NPY002
    states = {name: value.clone() for name, value in rng_tensors().items()}

    def draw():
        return [
            random.random(),
            random.gauss(0, 1),
            np.random.rand(),  # noqa: NPY002
            np.random.standard_normal(),  # noqa: NPY002
            torch.rand(1).item(),
        ]

    first = draw()
    set_rng(states)
    assert draw() == first
