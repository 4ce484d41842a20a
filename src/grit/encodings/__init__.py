"""Encodings: pure functions from graphs to (node encoding, pair encoding), in the table `ENCODINGS`."""

from grit.encodings.cycles import cycle_lengths, cycles_encoding
from grit.encodings.encoding import Encoding, EncodingKind, check_walk_steps
from grit.encodings.laplacian import laplacian_encoding, unnormalised_laplacian_encoding
from grit.encodings.none import no_encoding
from grit.encodings.resistance import resistance_encoding
from grit.encodings.rrwp import rrwp_encoding
from grit.encodings.rwse import rwse_encoding
from grit.encodings.spd import spd_encoding
from grit.encodings.svd import svd_encoding, svd_loops_encoding
from grit.errors import GritError


def _full(walk_steps: int) -> int:
    return walk_steps


def _double(walk_steps: int) -> int:
    return 2 * walk_steps


def _one_more(walk_steps: int) -> int:
    return walk_steps + 1


def _absent(walk_steps: int) -> int:
    return 0


ENCODINGS: dict[str, EncodingKind] = {
    "rrwp": EncodingKind(rrwp_encoding, node_dim=_full, pair_dim=_full, reads_weights=True),
    "rwse": EncodingKind(rwse_encoding, node_dim=_full, pair_dim=_absent, reads_weights=True),
    "spd": EncodingKind(spd_encoding, node_dim=_absent, pair_dim=_full),
    "resistance": EncodingKind(resistance_encoding, node_dim=_absent, pair_dim=_one_more),
    "laplacian": EncodingKind(laplacian_encoding, node_dim=_double, pair_dim=_absent, equivariant=False),
    "laplacian-unnormalised": EncodingKind(
        unnormalised_laplacian_encoding, node_dim=_double, pair_dim=_absent, equivariant=False
    ),
    "svd": EncodingKind(svd_encoding, node_dim=_double, pair_dim=_absent, equivariant=False),
    "cycles": EncodingKind(cycles_encoding, node_dim=cycle_lengths, pair_dim=cycle_lengths),
    "svd-loops": EncodingKind(svd_loops_encoding, node_dim=_double, pair_dim=_absent, equivariant=False),
    "none": EncodingKind(no_encoding, node_dim=_absent, pair_dim=_absent),
}


def encoding_kind(name: str) -> EncodingKind:
    """The entry of that name."""
    if name not in ENCODINGS:
        raise GritError(f"unknown encoding {name!r}; there are {', '.join(ENCODINGS)}.")
    return ENCODINGS[name]


__all__ = ["ENCODINGS", "Encoding", "EncodingKind", "check_walk_steps", "encoding_kind"]
