"""Numbers of a whole molecule that a model reads beside its graph: the table `DESCRIPTORS`, whose names stores and runs keep."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from grit.datasets.molecules.descriptors import RDKIT_DESCRIPTORS, rdkit_descriptors
from grit.datasets.molecules.smiles import FINGERPRINT_BITS, morgan_counts
from grit.errors import GritError
from grit.graphs.chunk import Array
from grit.graphs.schema import GraphInputs


@dataclass(frozen=True)
class DescriptorKind:
    """One entry of `DESCRIPTORS`.

    Attributes:
        names: Of its numbers, in their order.
        compute: Molecule -> (D,), NaN where there is no value.
    """

    names: tuple[str, ...]
    compute: Callable[[Any], Array]


DESCRIPTORS: dict[str, DescriptorKind] = {
    "rdkit": DescriptorKind(RDKIT_DESCRIPTORS, rdkit_descriptors),
    "morgan": DescriptorKind(tuple(f"morgan_{bit}" for bit in range(FINGERPRINT_BITS)), morgan_counts),
}


def graph_inputs(columns: Sequence[str], descriptors: Sequence[str]) -> GraphInputs | None:
    """What these columns and descriptors are together; None if there are none."""
    unknown = [name for name in descriptors if name not in DESCRIPTORS]
    if unknown:
        raise GritError(f"there are no descriptors {unknown[0]!r}; --descriptors takes {' or '.join(DESCRIPTORS)}.")
    twice = [name for name in descriptors if list(descriptors).count(name) > 1]
    if twice:
        raise GritError(f"the descriptors {twice[0]!r} are named twice.")
    names = (*columns, *(each for name in descriptors for each in DESCRIPTORS[name].names))
    return GraphInputs(columns=tuple(columns), descriptors=tuple(descriptors), names=names) if names else None


def molecule_numbers(molecule: Any, given: Sequence[float], descriptors: Sequence[str]) -> Array | None:
    """All numbers of a molecule, (F,) float32: those of its row, then its descriptors; None if there are none."""
    parts = [np.asarray(given, dtype=np.float32)] if given else []
    parts += [DESCRIPTORS[name].compute(molecule).astype(np.float32) for name in descriptors]
    return np.concatenate(parts) if parts else None
