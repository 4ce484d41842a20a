"""What a predictor says about molecules: values, and how sure they are."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from grit.graphs.chunk import Array


class Predictions(NamedTuple):
    """Predictions for R rows of T targets; O outputs are T, or the number of classes.

    Attributes:
        outputs: (R, O) numbers in the targets' own units, or probabilities.
        spread: (R, O) standard deviation over the members of an ensemble; None for a single model.
        low: (R, T) lower ends of the intervals of numbers; None without calibration.
        high: (R, T) upper ends.
        sets: For each target (R, classes): which classes cannot be excluded; None without calibration.
        similarity: (R,) Tanimoto similarity to the nearest training molecule; None where these are not known.
        notes: For each row what a reader should know, or ""; empty where there is nothing about any.
    """

    outputs: Array
    spread: Array | None = None
    low: Array | None = None
    high: Array | None = None
    sets: tuple[Array, ...] | None = None
    similarity: Array | None = None
    notes: tuple[str, ...] = ()


def spread_out(found: Predictions, places: Array, notes: Sequence[str]) -> Predictions:
    """Predictions of some rows in the places of all.

    Args:
        found: Of the rows that have predictions.
        places: (R,) for each of all rows its number in ``found``, or -1.
        notes: For each of all rows why it has no prediction, or "".
    """

    def rows(values: Array | None) -> Array | None:
        if values is None:
            return None
        kind = np.bool_ if values.dtype == np.bool_ else np.float64
        out = np.full((len(places), *values.shape[1:]), False if kind is np.bool_ else np.nan, dtype=kind)
        out[places >= 0] = values[places[places >= 0]]
        return out

    outputs = rows(found.outputs)
    assert outputs is not None
    own = [found.notes[place] if found.notes and place >= 0 else "" for place in places.tolist()]
    return Predictions(
        outputs,
        rows(found.spread),
        rows(found.low),
        rows(found.high),
        None if found.sets is None else tuple(each for each in map(rows, found.sets) if each is not None),
        rows(found.similarity),
        tuple(note or other for note, other in zip(notes, own, strict=True)),
    )


def joined(parts: Sequence[Predictions]) -> Predictions:
    """Predictions of several groups of rows as one; all groups have the same fields."""

    def rows(values: Sequence[Array | None]) -> Array | None:
        known = [each for each in values if each is not None]
        return np.concatenate(known) if known else None

    outputs = np.concatenate([each.outputs for each in parts])
    sets = [each.sets for each in parts if each.sets is not None]
    return Predictions(
        outputs,
        rows([each.spread for each in parts]),
        rows([each.low for each in parts]),
        rows([each.high for each in parts]),
        tuple(np.concatenate(group) for group in zip(*sets, strict=True)) if sets else None,
        rows([each.similarity for each in parts]),
        tuple(note for each in parts for note in each.notes),
    )
