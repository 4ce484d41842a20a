"""A small plot of some curves in plain characters."""

from collections.abc import Sequence
from math import isfinite

MARKS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def text_plot(
    curves: Sequence[Sequence[float]], marks: Sequence[str] = MARKS, *, width: int = 64, height: int = 12
) -> list[str]:
    """Lines of a plot: values upwards, their numbers from 1 to the right, a mark per curve, ``*`` where some meet.

    Args:
        curves: A value per epoch; what is not finite is left out.
        marks: The first character of each is the mark of a curve.
        width: Characters of the plot itself.
        height: Its lines.
    """
    finite = [value for curve in curves for value in curve if isfinite(value)]
    if not finite:
        return ["no values yet"]
    low, high, longest = min(finite), max(finite), max(len(curve) for curve in curves)
    cells = [[" "] * width for _ in range(height)]
    for number, curve in enumerate(curves):
        mark = marks[number % len(marks)][0]
        for epoch, value in enumerate(curve):
            if isfinite(value):
                column = round(epoch / max(1, longest - 1) * (width - 1))
                row = round((high - value) / (high - low) * (height - 1)) if high > low else height // 2
                cells[row][column] = mark if cells[row][column] in (" ", mark) else "*"
    labels = [f"{high:.4g}", *[""] * (height - 2), f"{low:.4g}"]
    margin = max(map(len, labels))
    lines = [f"{label:>{margin}} |{''.join(row).rstrip()}" for label, row in zip(labels, cells, strict=True)]
    ruler = f"1{longest:>{width - 1}}"
    return [*lines, f"{' ' * margin} +{'-' * width}", f"{' ' * margin}  {ruler} epochs"]
