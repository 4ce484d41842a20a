"""How near a molecule is to those that a model learned from: ``neighbours.npz`` of a fit.

Similarity is that of Tanimoto, |a & b| / |a | b|, of Morgan fingerprints (radius 2, 2,048 bits). A molecule is outside if its
nearest training molecule is less similar than those of 95 % of the training molecules are to theirs.

Shape letters: R rows, M training molecules, W = 32 words of 64 bits.
"""

import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from grit.errors import GritError
from grit.files.ordinary_file import check_ordinary
from grit.files.whole_file import whole_file
from grit.graphs.chunk import Array

FILE = "neighbours.npz"
_BYTES = 256  # of a packed fingerprint
_BLOCK = 1 << 22  # words that are compared at once: 32 MB
_SAMPLE = 2000  # training molecules whose nearest others set the limit
_SHARE_OUTSIDE = 0.05


@dataclass(frozen=True)
class Neighbours:
    """Training molecules.

    Attributes:
        fingerprints: (M, 256) uint8, packed.
        rows: (M,) of the source.
        limit: Similarity below which a molecule is outside.
    """

    fingerprints: Array
    rows: Array
    limit: float

    @classmethod
    def of(cls, fingerprints: Array, rows: Array) -> "Neighbours":
        """Of training molecules, with the limit that they give."""
        chosen = np.unique(np.linspace(0, len(rows) - 1, min(_SAMPLE, len(rows))).astype(np.int64))
        if len(rows) < 2:
            return cls(fingerprints, rows, 0.0)
        nearest = nearest_similarity(fingerprints[chosen], fingerprints, skip=chosen)
        return cls(fingerprints, rows, float(np.quantile(nearest, _SHARE_OUTSIDE)))

    def similarity(self, fingerprints: Array) -> Array:
        """Similarity of each to the nearest training molecule, (R,)."""
        return nearest_similarity(fingerprints, self.fingerprints)

    def notes(self, similarity: Array) -> tuple[str, ...]:
        """For each row a sentence if it is outside, else nothing."""
        text = "unlike the training molecules: similarity {:.2f}, usual from {:.2f}"
        return tuple(text.format(each, self.limit) if each < self.limit else "" for each in similarity.tolist())

    def write(self, folder: Path) -> None:
        """Write ``neighbours.npz``."""
        path = folder / FILE
        try:
            with whole_file(path) as file:
                np.savez_compressed(
                    file, fingerprints=self.fingerprints, rows=self.rows.astype(np.int64), limit=np.array(self.limit)
                )
        except OSError as error:
            raise GritError(f"cannot write {str(path)!r}: {error}") from None


def read_neighbours(folder: Path) -> Neighbours | None:
    """The training molecules of a fit; None if they are not there."""
    path = folder / FILE
    if not path.exists():
        return None
    try:
        with np.load(check_ordinary(path), allow_pickle=False) as content:
            fingerprints, rows, limit = content["fingerprints"], content["rows"], content["limit"]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise GritError(
            f"{str(path)!r} cannot be read: {error}. Repeat the fit with --resume to write it again."
        ) from None
    is_sound = fingerprints.dtype == np.uint8 and fingerprints.shape == (len(rows), _BYTES) and limit.shape == ()
    if not (is_sound and len(rows)):
        raise GritError(f"{str(path)!r} holds no fingerprints. Repeat the fit with --resume to write it again.")
    return Neighbours(fingerprints, rows, float(limit))


def nearest_similarity(queries: Array, known: Array, skip: Array | None = None, block: int = _BLOCK) -> Array:
    """The largest Tanimoto similarity of each query to any of the known, (R,).

    Args:
        queries: (R, 256) uint8, packed.
        known: (M, 256).
        skip: (R,) the known one that each query itself is, which does not count.
        block: Words that are compared at once.
    """
    a, b = _words(queries), _words(known)
    count_a, count_b = (_popcount(each).sum(1, dtype=np.int64) for each in (a, b))  # (R,), (M,)
    best = np.zeros(len(a))
    pairs = max(1, block // a.shape[1])
    step = max(1, pairs // max(1, len(b)))
    columns = max(1, pairs // step)
    for first in range(0, len(a), step):
        part = slice(first, min(first + step, len(a)))
        for begin in range(0, len(b), columns):
            end = min(begin + columns, len(b))
            common = np.zeros((part.stop - part.start, end - begin), dtype=np.int64)
            for word in range(a.shape[1]):
                common += _popcount(a[part, word, None] & b[None, begin:end, word])
            union = count_a[part, None] + count_b[None, begin:end] - common
            similarity = np.where(union > 0, common / np.maximum(union, 1), 1.0)  # two molecules without bits are alike
            if skip is not None:
                own = np.flatnonzero((skip[part] >= begin) & (skip[part] < end))
                similarity[own, skip[part][own] - begin] = 0.0
            best[part] = np.maximum(best[part], similarity.max(1))
    return best


def _words(packed: Array) -> Array:
    return np.ascontiguousarray(packed).view(np.uint64)


def _popcount(words: Array) -> Array:
    """Bits that are set in each word."""
    counts: Array
    if np.lib.NumpyVersion(np.__version__) >= "2.0.0":
        counts = np.bitwise_count(words)
    else:
        shape = (*words.shape, 8)
        counts = _BITS[np.ascontiguousarray(words).view(np.uint8).reshape(shape)].sum(-1, dtype=np.uint8)
    return counts


_BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(1, dtype=np.uint8)
