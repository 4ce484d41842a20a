"""Checkpoints with damaged bytes: read whole as they were written, or refused."""

from pathlib import Path
from random import Random

import torch

from grit.training.checkpoint import read_checkpoint
from tests.fuzz import scene
from tests.fuzz.mutation import damaged


def make_input(rng: Random) -> bytes:
    """The bytes of a file."""
    content = (scene.folder() / "run" / "checkpoints" / "best.safetensors").read_bytes()
    if rng.random() < 0.5:  # in the header, which is the part that says what is where
        length = 8 + int.from_bytes(content[:8], "little")
        return damaged(rng, content[:length]) + content[length:]
    return damaged(rng, content)


def try_it(value: bytes, folder: Path) -> None:
    """Read it."""
    path = folder / "best.safetensors"
    path.write_bytes(value)
    found = read_checkpoint(path)
    wanted = read_checkpoint(scene.folder() / "run" / "checkpoints" / "best.safetensors")
    assert found.state == wanted.state
    assert found.tensors.keys() == wanted.tensors.keys()
    for name, tensor in wanted.tensors.items():
        assert found.tensors[name].dtype == tensor.dtype, f"{name} has another type"
        assert torch.equal(found.tensors[name], tensor), f"{name} is another"
