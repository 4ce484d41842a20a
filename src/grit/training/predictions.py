"""What a predictor says about molecules: values, and how sure they are."""

from typing import NamedTuple

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
