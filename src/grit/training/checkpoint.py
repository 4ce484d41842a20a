"""Checkpoints: one safetensors file with tensors and, in its header, the rest of the state as JSON.

Written whole or not at all, with a checksum; the one before is kept under a second name, so that at every moment there is
one that can be read.
"""

import hashlib
import json
import random
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from grit.errors import GritError
from grit.files.ordinary_file import check_ordinary
from grit.files.whole_file import whole_file

FORMAT = "grit-checkpoint"
FORMAT_VERSION = 1


@dataclass(frozen=True)
class Checkpoint:
    """Tensors by name, and everything else as plain values."""

    tensors: dict[str, Tensor]
    state: dict[str, Any]

    def under(self, prefix: str) -> dict[str, Tensor]:
        """The tensors whose names begin with ``prefix``, without it."""
        return {name.removeprefix(prefix): value for name, value in self.tensors.items() if name.startswith(prefix)}


def write_checkpoint(
    path: Path, tensors: Mapping[str, Tensor], state: Mapping[str, Any], *, keep_previous: bool = False
) -> None:
    """Put a checkpoint at ``path``, whole or not at all; the old one becomes ``previous`` if asked."""
    plain = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    text = json.dumps(state)
    metadata = {
        "format": FORMAT,
        "version": str(FORMAT_VERSION),
        "state": text,
        "sha256": _checksum(plain, text),
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path, keep_old=previous(path) if keep_previous else None) as file:
            file.write(save(plain, metadata))
    except OSError as error:
        raise GritError(
            f"cannot write the checkpoint {str(path)!r}: {error}. The one before is kept; make room and resume."
        ) from None


def previous(path: Path) -> Path:
    """Where the checkpoint before ``path`` is kept."""
    return path.with_name(f"previous-{path.name}")


def read_checkpoint(path: Path) -> Checkpoint:
    """Read and verify a checkpoint."""
    try:
        with safe_open(check_ordinary(path), framework="pt") as file:
            metadata = file.metadata() or {}
            if metadata.get("format") != FORMAT:
                raise GritError(f"{str(path)!r} is not a checkpoint of grit.")
            if metadata.get("version") != str(FORMAT_VERSION):
                raise GritError(
                    f"the checkpoint {str(path)!r} has format version {metadata.get('version')}, "
                    f"this grit reads {FORMAT_VERSION}. Use the version of grit that wrote it, or train again."
                )
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (no dict)
        if metadata.get("sha256") != _checksum(tensors, metadata.get("state", "")):
            raise GritError(f"the checkpoint {str(path)!r} is damaged: its checksum does not match.")
        return Checkpoint(tensors, json.loads(metadata["state"]))
    except (SafetensorError, OSError, KeyError, ValueError, struct.error) as error:
        if isinstance(error, GritError):
            raise
        raise GritError(f"the checkpoint {str(path)!r} cannot be read: {error}.") from None


def read_last(path: Path) -> tuple[Checkpoint, str | None]:
    """The checkpoint at ``path``, or the one before if that cannot be read, and a sentence that says so."""
    try:
        return read_checkpoint(path), None
    except GritError as error:
        if not previous(path).exists():
            raise
        return read_checkpoint(previous(path)), f"{error} The one before is used."


def load_weights(network: nn.Module, weights: dict[str, Tensor], where: str) -> None:
    """Load a state dict; an error that lists what does not fit."""
    wanted = {name: value.shape for name, value in network.state_dict().items()}
    missing, unexpected = sorted(wanted.keys() - weights.keys()), sorted(weights.keys() - wanted.keys())
    wrong = sorted(name for name in wanted.keys() & weights.keys() if wanted[name] != weights[name].shape)
    if missing or unexpected or wrong:
        parts = [("missing", missing), ("unexpected", unexpected), ("of another shape", wrong)]
        listed = "; ".join(
            f"{what}: {', '.join(names[:4])}{' ...' if len(names) > 4 else ''}" for what, names in parts if names
        )
        raise GritError(f"the weights in {where!r} are of another model ({listed}).")
    network.load_state_dict(weights)


def rng_tensors() -> dict[str, Tensor]:
    """State of all random numbers of this process: torch's on every device, NumPy's and Python's."""
    mersenne: Any = np.random.get_state(legacy=False)  # noqa: NPY002
    _, python, python_gauss = random.getstate()
    states = {
        "torch": torch.get_rng_state(),
        "numpy": torch.tensor([*mersenne["state"]["key"].tolist(), mersenne["state"]["pos"], mersenne["has_gauss"]]),
        "numpy_gauss": torch.tensor(mersenne["gauss"], dtype=torch.float64),
        "python": torch.tensor(python),
        "python_gauss": torch.tensor([] if python_gauss is None else [python_gauss], dtype=torch.float64),
    }
    for number in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
        states[f"cuda.{number}"] = torch.cuda.get_rng_state(number)
    return states


def set_rng(states: Mapping[str, Tensor]) -> None:
    """Put `rng_tensors` back."""
    torch.set_rng_state(states["torch"])
    *numbers, position, has_gauss = states["numpy"].tolist()
    gauss = states["numpy_gauss"].item()
    np.random.set_state(("MT19937", np.array(numbers, dtype=np.uint32), position, has_gauss, gauss))  # noqa: NPY002
    python_gauss = states["python_gauss"].tolist()
    random.setstate((3, tuple(states["python"].tolist()), python_gauss[0] if python_gauss else None))
    for number in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
        if f"cuda.{number}" in states:
            torch.cuda.set_rng_state(states[f"cuda.{number}"], number)


def _checksum(tensors: Mapping[str, Tensor], text: str) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        value = tensors[name].contiguous()
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        digest.update(value.flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()
