"""Structures: lists of the parts of a graph that some models read, in the table `STRUCTURES`.

A model asks for them by name and size, ``rings-18``; they are then in ``PairBatch.structures``.
"""

import re

from grit.encodings.structures.egonets import EGONETS
from grit.encodings.structures.paths import PATHS
from grit.encodings.structures.rings import RINGS
from grit.encodings.structures.structure import OneGraph, Structure, StructureKind, compute_structure
from grit.errors import GritError

STRUCTURES: dict[str, StructureKind] = {"egonets": EGONETS, "paths": PATHS, "rings": RINGS}


def parse_structure(text: str) -> tuple[str, int]:
    """Name and size of a structure written as ``rings-18``."""
    match = re.fullmatch(r"(.+)-(\d{1,6})", text)
    if match is None or match.group(1) not in STRUCTURES:
        raise GritError(
            f"{text!r} is no structure: write name and size, such as rings-18; there are {', '.join(STRUCTURES)}."
        )
    return match.group(1), int(match.group(2))


__all__ = ["STRUCTURES", "OneGraph", "Structure", "StructureKind", "compute_structure", "parse_structure"]
