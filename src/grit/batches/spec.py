"""`BatchSpec`: what turns graphs into the batches that one model reads."""

from dataclasses import dataclass

import torch

from grit.encodings import EncodingKind, check_walk_steps, encoding_kind
from grit.encodings.structures import parse_structure
from grit.errors import GritError
from grit.graphs.pairs import check_pairs_kind


@dataclass(frozen=True)
class BatchSpec:
    """How batches are made from graphs: a model needs the same for training and for every prediction.

    Attributes:
        walk_steps: K, the size of the encoding.
        encoding: Entry of `ENCODINGS`.
        pairs: Which pairs attention runs over: ``all``, ``edges`` or ``khop-N``, see `choose_pairs`.
        dtype: Number type of encodings, and of features and targets that are numbers.
        structures: Entries of `STRUCTURES` with their sizes, such as ``("rings-18",)``.
    """

    walk_steps: int = 21
    encoding: str = "rrwp"
    pairs: str = "all"
    dtype: torch.dtype = torch.float32
    structures: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        encoding_kind(self.encoding)
        if not isinstance(self.dtype, torch.dtype) or not self.dtype.is_floating_point:
            raise GritError(f"dtype must be a floating-point type such as torch.float32, got {self.dtype}.")
        check_walk_steps(self.walk_steps)
        check_pairs_kind(self.pairs)
        for structure in self.structures:
            parse_structure(structure)

    @property
    def kind(self) -> EncodingKind:
        """The entry of `ENCODINGS`."""
        return encoding_kind(self.encoding)

    @property
    def bytes_per_pair(self) -> int:
        """Memory that the encoding of one pair takes."""
        return self.kind.pair_dim(self.walk_steps) * self.dtype.itemsize
